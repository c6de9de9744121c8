"""Content hashes: what share of random ones is recognised, and that no words are."""

from __future__ import annotations

from random import Random
from string import ascii_lowercase, ascii_uppercase, digits

import pytest

from pipeline.counting.names.hashes import is_content_hash, without_bundle_hash

HEXADECIMAL = digits + "abcdef"


@pytest.mark.parametrize(
    ("prefix", "alphabet", "width", "share"),
    [
        pytest.param("index-", HEXADECIMAL, 8, 0.76, id="Parcel"),
        pytest.param("index.", HEXADECIMAL, 16, 0.95, id="Next.js"),
        pytest.param("index-", HEXADECIMAL, 20, 0.96, id="webpack"),
        pytest.param("main-", ascii_uppercase + "234567", 8, 0.45, id="esbuild"),
        pytest.param("chunk-", ascii_uppercase + "234567", 8, 0.70, id="chunks of esbuild"),
        pytest.param("index-", ascii_lowercase + ascii_uppercase + digits + "-_", 8, 0.21, id="Vite"),
    ],
)
def test_the_share_of_random_hashes_that_is_recognised(
    prefix: str, alphabet: str, width: int, share: float
) -> None:
    random = Random(1)
    hashes = ["".join(random.choices(alphabet, k=width)) for _ in range(3000)]
    frames = [without_bundle_hash(f"run /app/{prefix}{text}.js") for text in hashes]
    assert frames.count(f"run /app/{prefix[:-1]}.js") / len(frames) == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize(
    "text",
    [
        *("Sha256Fn", "IPv4Addr", "getV2Url", "toBase64", "Mp3ToMp4", "IPv4ToV6", "S3V4Sign", "i18nUtil"),
        *("a11yHtml", "e2eTests", "X509V3Ex", "h264Mp4A", "Utf8To16", "B64ToX12", "F32ToF64", "u8ToU16X"),
        *(
            "SECTION2",
            "BASE3264",
            "IPV4IPV6",
            "HTTP2API",
            "20240101",
            "20240101120000",
            "2024dec1",
            "cafe2024",
        ),
        *("decade12", "deadbeef", "face2face", "ed25519a", "checkout", "SETTINGS", "Crc32Fn2"),
    ],
)
def test_words_terms_dates_and_numbers_are_no_hashes(text: str) -> None:
    assert not is_content_hash(text)
    assert without_bundle_hash(f"run /app/x-{text}.js") == f"run /app/x-{text}.js"
