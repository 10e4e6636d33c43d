"""Records behave as dataclasses do, also before the first object is made, and where classes are changed or inherited."""

import copy
import dataclasses
import inspect
import pickle
import subprocess
import sys
import threading
from typing import ClassVar

import pytest

from subword_nb.core.records import field, record, replace


def new_record():
    @record(frozen=True)
    class New:
        x: int
        y: list = field(default_factory=list)

    return New


def test_threads_that_make_the_first_object_at_once():
    for _ in range(50):
        kind, found, barrier = new_record(), [], threading.Barrier(4)

        def make(kind=kind, found=found, barrier=barrier):
            barrier.wait()
            found.append(kind(1, [2]))

        threads = [threading.Thread(target=make) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4 and all(x == found[0] and x.y == [2] for x in found)


def test_a_method_that_is_replaced_stays_replaced():
    kind, calls = new_record(), []
    original = kind.__init__

    def traced(self, *values, **named):
        calls.append(values)
        original(self, *values, **named)

    kind.__init__ = traced
    assert kind(1) == kind(1, []) and len(calls) == 2


def test_objects_that_are_read_before_one_is_made():
    "Equality, hash and refusal do not wait for `__init__`."
    program = (
        "import pickle, sys; a, b = (pickle.loads(bytes.fromhex(sys.argv[1])) for _ in 'ab')\n"
        "assert a == b and hash(a) == hash(b) and 'AddedToken(' in repr(a)\n"
        "try: a.content = 'x'\n"
        "except AttributeError: print('refused')"
    )
    from subword_nb.pipeline.vocab import AddedToken

    data = pickle.dumps(AddedToken("<s>", special=True)).hex()
    done = subprocess.run([sys.executable, "-c", program, data], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr


def test_the_fields_are_made_once():
    kind = new_record()
    assert kind.__dataclass_fields__ is kind.__dataclass_fields__
    assert str(inspect.signature(kind.__init__)).startswith("(self, x: int, y: list")
    assert kind.__init__.__module__ == __name__


def test_values_of_a_class_and_defaults_of_bases():
    class Base:
        y = 5

    @record
    class Both(Base):
        kinds: ClassVar[dict] = {}
        said: "ClassVar[int]" = 3
        x: int
        y: int

    assert vars(Both(1)) == {"x": 1, "y": 5}

    @dataclasses.dataclass
    class Old:
        x: int

    @record
    class New(Old):
        y: int = 1

    assert New(3) == New(3, 1) and replace(New(3), x=4).x == 4


def test_what_dataclass_refuses_is_refused():
    @record
    class Shared:
        x: list = []

    with pytest.raises(ValueError, match="mutable default"):
        Shared()
    with pytest.raises(TypeError, match="must not define __setattr__"):

        @record(frozen=True)
        class Own:
            x: int

            def __setattr__(self, name, value):
                pass


def test_a_class_between_keeps_its_way_to_assign():
    class Counting:
        def __setattr__(self, name, value):
            object.__setattr__(self, name, value + 1)

    @record(frozen=True)
    class Fixed(Counting):
        x: int = 1

    class Open(Fixed):
        pass

    found = Open()
    found.more = 1
    assert found.more == 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        found.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del found.x


@pytest.mark.skipif(sys.version_info < (3, 13), reason="copy.replace is new in Python 3.13")
def test_copies_with_other_values():
    assert copy.replace(new_record()(1), x=2).x == 2
