"""What things cost, compared with what less of them costs: no clock on the wall, and no figure of one machine."""

import gc
import os
import time
from math import inf


def assert_linear(work, make, n, times=16, grows=None, what="", slack=4, clock=time.process_time):
    """Assert that `work` on something of size `n` takes CPU time in proportion to what a part of it takes, of size `n // times`.

    `make` is called with a size; or it is a string that is repeated up to that length, or a list whose front is taken.
    In proportion means `times` as much (or `grows`, if less is expected), quadratic the square of that; `slack` times the
    former is let pass, and what is less than a fiftieth of a second. What else the machine does can only be a reason to
    measure again, up to five times; the least time of each counts.
    `clock` is `user_seconds` where much memory is used: what the system takes to hand it out depends on who had it before.
    """
    small, large = sized(make, n // times), sized(make, n)
    quick, slow = inf, inf
    work(small)  # makes what is made once: compiled kernels, tables
    for _ in range(5):
        quick, slow = (
            min(quick, cpu_seconds(work, small, clock=clock)),
            min(slow, cpu_seconds(work, large, clock=clock)),
        )
        if slow <= slack * (grows or times) * quick + 0.02:
            return
    raise AssertionError(
        f"{slow:.3f} s of CPU time for {n:,} after {quick:.4f} s for {n // times:,}, more than in proportion: {what or ascii(make)[:80]}"
    )


def sized(make, n):
    "Something of size n."
    if callable(make):
        return make(n)
    assert n >= (1 if isinstance(make, list) else len(make))
    return make[:n] if isinstance(make, list) else make * (n // len(make))


def user_seconds():
    "CPU time of this process outside of the system."
    return os.times().user


def cpu_seconds(work, *args, clock=time.process_time):
    "CPU time of one call, of all threads."
    collects = gc.isenabled()
    gc.disable()  # it looks through whatever other tests have left
    try:
        begun = clock()
        work(*args)
        return clock() - begun
    finally:
        if collects:
            gc.enable()
