"""What changes modify that name no subroutine."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pipeline.analysis.dedup.packages import modified_by
from pipeline.analysis.stacks import index_stacks
from pipeline.model import Change, StackMatrix
from tests.support.builders import build_change

STACKS = (
    ("shop.main", "shop.Cart.add", "lib.crypto.Hash.sign"),
    ("shop.main", "lib.crypto.digest"),
    ("shop.main", "github.com/acme/money.Parse"),
    ("shop.main", "endpoint=lib.crypto/x", "shop.Cart.add"),
    ("shop.main", "shop.Cart.total"),
)
INDEX = index_stacks(
    StackMatrix(STACKS, np.array([10.0, 5, 5, 10, 70]), np.array([20.0, 9, 9, 10, 52]), 100, 100)
)
MONEY = "github.com/acme/money.Parse"
CRYPTO = ["lib.crypto.Hash.sign", "lib.crypto.digest"]


def titled(title: str, *subroutines: str) -> Change:
    return replace(build_change("D1", subroutines), title=title, summary="")


@pytest.mark.parametrize(
    ("change", "modified"),
    [
        pytest.param(titled("Upgrade lib.crypto from 3.1.0 to 3.2.0"), CRYPTO, id="an upgrade"),
        pytest.param(titled("lib.crypto: sign twice."), CRYPTO, id="with punctuation"),
        pytest.param(
            titled("Bump github.com/acme/money from 1 to 2"), ["github.com/acme/money.Parse"], id="Go"
        ),
        pytest.param(titled("Make lib.crypto.Hash slower"), CRYPTO[:1], id="a class"),
        pytest.param(replace(titled(""), summary="Upgrades lib.crypto."), CRYPTO, id="in the summary"),
        pytest.param(titled("Upgrade crypto"), [], id="not in full"),
        pytest.param(titled("Upgrade lib.cry"), [], id="a part of a name"),
        pytest.param(titled("Format shop"), [], id="most of the service"),
        pytest.param(titled("Upgrade lib.crypto", "shop.main"), ["shop.main"], id="subroutines are known"),
    ],
)
def test_packages_that_changes_name(change: Change, modified: list[str]) -> None:
    assert list(modified_by([change], INDEX)["D1"]) == modified


def test_words_may_be_left_out() -> None:
    assert list(modified_by([titled("Upgrade lib.crypto")], INDEX, words=False)["D1"]) == []
