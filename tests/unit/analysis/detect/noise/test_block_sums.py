from __future__ import annotations

import numpy as np
import pytest

from pipeline.analysis.detect.noise.block_sums import BlockSums

OBSERVED = np.random.default_rng(1).random((5, 103))


@pytest.mark.parametrize("exposure", [OBSERVED + 1.0, np.ones((1, 103))], ids=["each", "shared"])
def test_wider_blocks_are_made_of_finer_ones_from_the_new_end(exposure: np.ndarray) -> None:
    sums = BlockSums(OBSERVED, exposure)
    for width in (1, 2, 6, 20, 60, 7):
        blocks = 103 // width
        for part, found in zip((OBSERVED, exposure), sums.of_width(width), strict=True):
            direct = part[:, 103 - blocks * width :].reshape(len(part), blocks, width).sum(axis=2)
            np.testing.assert_allclose(found, direct)


def test_some_rows_share_what_all_have() -> None:
    sums = BlockSums(OBSERVED, np.ones((1, 103)))
    observed, exposure = sums.of_rows(np.array([1, 3]), 10)
    np.testing.assert_array_equal(observed, sums.of_width(10)[0][[1, 3]])
    assert exposure.shape == (1, 10)
