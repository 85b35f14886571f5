"""The URL loading system against Apache's httpd: Digest authentication, and PUT and DELETE over WebDAV."""

import pytest

from support.loading import load, load_one


def test_digest_authenticates_with_the_right_password(apache, nginx, tmp_path):
    got = load(f"{apache.base}/private/file?right", "--times", 5, "--user", "ada:secret", "--output", tmp_path / "got")
    assert got[0].has("challenge HTTPDigest 'The attic' 0", "response 200", "completed")
    assert all(one.status == 200 for one in got) and (tmp_path / "got").read_bytes() == nginx.content
    # The nonce of the first response is used for the other requests.
    assert apache.statuses("/private/file?right", 6) == [401, 200, 200, 200, 200, 200]


def test_digest_challenges_a_wrong_password_again(apache):
    got = load_one(f"{apache.base}/private/file", "--user", "ada:wrong", "--tries", 2, fails=True)
    asked = [event for event in got.events if event.startswith("challenge")]
    assert asked == [f"challenge HTTPDigest 'The attic' {number}" for number in range(3)] and got.code in (-999, -1012)


@pytest.mark.parametrize("how", ["--upload", "--stream"])
def test_a_file_is_put_and_deleted(apache, nginx, how):
    name = f"put{how}"
    assert load_one(f"{apache.base}/dav/{name}", how, nginx.file).status == 201
    assert (apache.uploads / name).read_bytes() == nginx.content
    assert load_one(f"{apache.base}/dav/{name}", "--method", "DELETE").status == 204
    assert not (apache.uploads / name).exists()


@pytest.mark.parametrize("how", ["--upload", "--stream"])
def test_a_body_is_sent_again_after_a_challenge(apache, nginx, how):
    name = f"again{how}"
    got = load_one(f"{apache.base}/vault/{name}", how, nginx.file, "--user", "ada:secret")
    assert got.status == 201 and (apache.vault / name).read_bytes() == nginx.content
    assert got.has("challenge HTTPDigest 'The attic' 0", "response 201")
    if how == "--stream":
        assert got.events.count("body wanted") == 2
    assert got.countSent >= len(nginx.content)


def test_a_collection_is_created_and_listed(apache):
    assert load_one(f"{apache.base}/dav/shelf", "--method", "MKCOL").status == 201
    got = load_one(f"{apache.base}/dav/shelf", "--method", "PROPFIND", "--header", "Depth:0")
    assert got.status == 207 and got.headers["content-type"].startswith("text/xml")
