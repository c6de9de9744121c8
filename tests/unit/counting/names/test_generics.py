from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.rootcause.attribution import call_distances
from pipeline.analysis.stacks import index_stacks
from pipeline.counting.names import forms_of
from pipeline.model import StackMatrix


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("main.Map", "main.Map[...]"),
        ("github.com/acme/shop/cart.Total", "github.com/acme/shop/cart.Total[...]"),
        ("main.(*Cart).Add", "main.(*Cart[...]).Add"),
        ("shop/cart.Cart.Add", "shop/cart.Cart[...].Add"),
    ],
)
def test_generics_of_go_have_brackets_in_stacks(name: str, form: str) -> None:
    assert forms_of(name)[0] == name
    assert form in forms_of(name)


@pytest.mark.parametrize("name", ["main", "shop::Cart::add", "main.Map[...]"])
def test_others_have_one_form(name: str) -> None:
    assert forms_of(name) == (name,)


def test_a_change_meets_the_frames_of_a_generic() -> None:
    stacks = (("main.main", "main.Map[...]", "main.leaf"), ("main.main", "main.(*Cart[...]).Add"))
    distances = call_distances(index_stacks(StackMatrix(stacks, np.ones(2), np.ones(2), 2.0, 2.0)))
    assert distances.nearest(["main.Map"]).tolist() == [0.5, 0.0]
    assert distances.nearest(["main.(*Cart).Add"]).tolist() == [0.0, 1.0]
    assert distances.known(["main.Map", "main.gone"]) == 1
