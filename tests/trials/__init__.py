"""Trials: is the better branch better, or was it luck?"""
