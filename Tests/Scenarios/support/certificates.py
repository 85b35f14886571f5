"""A certificate authority for one test run, made with the `openssl` command and so independent of the gateway's TLS."""

import ssl
import subprocess

CONFIGURATION = """
[ca]
default_ca = house
[house]
database = {folder}/index.txt
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
default_crl_days = 30
[any]
commonName = supplied
[req]
distinguished_name = names
[names]
"""


class Authority:
    """An authority that also issues expired and misnamed certificates; its files are in `folder`."""

    def __init__(self, folder, name="Test authority"):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.txt").touch()
        (folder / "openssl.cnf").write_text(CONFIGURATION.format(folder=folder))
        # Intermediate certificates that a server sends after its leaf.
        self.chain = None
        self.key, self.certificate = folder / "authority.key", folder / "authority.pem"
        self._openssl("req", "-x509", "-config", folder / "openssl.cnf", *self._new_key(self.key), "-out", self.certificate, "-days",
                      "3650", "-subj", f"/CN={name}", "-addext", "basicConstraints=critical,CA:TRUE", "-addext",
                      "keyUsage=critical,keyCertSign,cRLSign")

    @staticmethod
    def _new_key(path):
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path]

    @staticmethod
    def _openssl(*words):
        run = subprocess.run(["openssl", *(str(word) for word in words)], capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr

    def _ca(self, *words):
        self._openssl("ca", "-config", self.folder / "openssl.cnf", "-cert", self.certificate, "-keyfile", self.key, *words)

    def issue(self, name, names="DNS:localhost,IP:127.0.0.1", starts="20200101000000Z", ends="20500101000000Z"):
        """(certificate, key) of a leaf; `names` are its alternative names."""
        key, request, leaf = (self.folder / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
        self._openssl("req", "-new", "-config", self.folder / "openssl.cnf", *self._new_key(key), "-out", request, "-subj",
                      f"/CN={name}", "-addext", f"subjectAltName={names}")
        self._ca("-batch", "-notext", "-in", request, "-out", leaf, "-startdate", starts, "-enddate", ends)
        if self.chain:
            leaf.write_bytes(leaf.read_bytes() + self.chain.read_bytes())
        return leaf, key

    def intermediate(self, name):
        """An intermediate authority signed by this one; its leaves are followed by its own certificate."""
        one = Authority(self.folder / name, name)
        request, extensions = one.folder / "authority.csr", one.folder / "authority.ext"
        extensions.write_text("basicConstraints=critical,CA:TRUE\nkeyUsage=critical,keyCertSign,cRLSign\n")
        self._openssl("req", "-new", "-config", one.folder / "openssl.cnf", "-key", one.key, "-out", request, "-subj", f"/CN={name}")
        self._ca("-batch", "-notext", "-in", request, "-out", one.certificate, "-days", "3650", "-extfile", extensions)
        one.chain = one.certificate
        return one

    def revocation_list(self, *revoked):
        """Revokes these certificates; returns the new file with all that this authority revoked."""
        for certificate in revoked:
            self._ca("-revoke", certificate)
        self._ca("-gencrl", "-out", self.folder / "revoked.crl")
        return self.folder / "revoked.crl"

    def self_signed(self, name):
        key, leaf = self.folder / f"{name}.key", self.folder / f"{name}.pem"
        self._openssl("req", "-x509", "-config", self.folder / "openssl.cnf", *self._new_key(key), "-out", leaf, "-days", "3650",
                      "-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
        return leaf, key

    # -- for the tests' own ends of a connection

    def client_context(self, certificate=None, version=None):
        context = ssl.create_default_context(cafile=self.certificate)
        if certificate:
            context.load_cert_chain(*certificate)
        if version:
            context.minimum_version = context.maximum_version = version
        return context

    @staticmethod
    def server_context(certificate, version=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if version:
            context.minimum_version = context.maximum_version = version
        return context
