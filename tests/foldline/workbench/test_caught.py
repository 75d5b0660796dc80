"""What is raised is held, but for what ends the program."""

from __future__ import annotations

import pytest

from foldline.workbench.caught import Caught


def test_an_error_is_held_and_goes_no_further() -> None:
    with Caught() as caught:
        raise KeyError("boom")
    assert isinstance(caught.error, KeyError)
    with Caught() as none:
        pass
    assert none.error is None


def test_an_interrupt_goes_on() -> None:
    with pytest.raises(KeyboardInterrupt), Caught():
        raise KeyboardInterrupt
