"""Trials: is the better branch better, or was it luck? Variants × repeats × checks → pass rates with intervals.

>>> from sessions_lib.trials import Trial, Variant, checks
>>> trial = Trial(session, at=6, prompts=["And now?"], variants=[Variant("base"), Variant("short", system="Be short.")],
...               checks=[checks.contains("key")], repeats=10)                                    # doctest: +SKIP
>>> trial.run(parallel=4).frame()                                                                 # doctest: +SKIP
"""

from sessions_lib.trials import checks
from sessions_lib.trials.trial import Result, Trial, Variant

__all__ = ["Result", "Trial", "Variant", "checks"]
