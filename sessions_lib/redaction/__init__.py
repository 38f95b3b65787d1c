"""Secrets and personal data in a text: where they stand, and the text without them.

``tokens`` is the table of the keys that begin in a way of their own, ``shapes`` has what is known by its surroundings,
``assignments`` what a name gives away, ``decoding`` finds all of them behind escapes and colours, ``texts`` puts them
together.

Does not know what a session is: ``export.redact`` does.
"""
