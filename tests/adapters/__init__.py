"""Adapters, each proved by the other side's own tests."""
