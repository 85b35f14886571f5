"""A Kerberos realm for one test, and Apache's httpd that authenticates with it and with NTLM."""

import os
import shutil
import subprocess
import tempfile
import textwrap
from pathlib import Path

from .programs import Program, find, free_port
from .web import logged, own

REALM, USER, PASSWORD = "EXAMPLE.TEST", "ada", "secret"


class Realm:
    """A key distribution centre (krb5kdc) with the user ada:secret and the service HTTP/localhost."""

    def __init__(self):
        self.folder = folder = Path(tempfile.mkdtemp(prefix="realm-"))
        self.port = free_port()
        self.keytab = folder / "keytab"
        (folder / "krb5.conf").write_text(textwrap.dedent(f"""
            [libdefaults]
                default_realm = {REALM}
                dns_lookup_kdc = false
                dns_lookup_realm = false
                dns_canonicalize_hostname = false
                rdns = false
                udp_preference_limit = 1
            [realms]
                {REALM} = {{
                    kdc = 127.0.0.1:{self.port}
                }}
            [domain_realm]
                localhost = {REALM}
            """))
        (folder / "kdc.conf").write_text(textwrap.dedent(f"""
            [kdcdefaults]
                kdc_listen = 127.0.0.1:{self.port}
                kdc_tcp_listen = 127.0.0.1:{self.port}
            [realms]
                {REALM} = {{
                    database_name = {folder}/principal
                    key_stash_file = {folder}/stash
                    acl_file = {folder}/acl
                }}
            """))
        self.run(find("kdb5_util"), "create", "-s", "-r", REALM, "-P", "master")
        for query in (f"addprinc -pw {PASSWORD} {USER}", "addprinc -randkey HTTP/localhost", f"ktadd -k {self.keytab} HTTP/localhost"):
            self.run(find("kadmin.local"), "-r", REALM, "-q", query)
        self.program = Program(find("krb5kdc"), "-n", env={**os.environ, **self.variables()})
        self.program.wait_listening(self.port)

    def variables(self, cache="none"):
        """Environment variables that name the realm and the cache of tickets."""
        return {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"), "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{self.folder / cache}"}

    def run(self, *words, cache="none", text=""):
        subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True, input=text, timeout=60,
                       env={**os.environ, **self.variables(cache)})

    def sign_in(self):
        """Obtains a ticket; returns the environment variables for using it."""
        self.run(find("kinit"), f"{USER}@{REALM}", cache="tickets", text=PASSWORD + "\n")
        return self.variables("tickets")

    def end(self):
        self.program.end()
        shutil.rmtree(self.folder, ignore_errors=True)


class AuthenticatingApache:
    """httpd with mod_auth_gssapi: /kerberos/file (authenticates each request), /bound/file (each connection), /ntlm/file (NTLM,
    and Negotiate with NTLM inside). X-User names the authenticated user."""

    def __init__(self, realm, content):
        # httpd refuses to run as root, and pytest's folders are not accessible to other users.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="httpd-"))
        for one in ("kerberos", "bound", "ntlm"):
            (folder / one).mkdir()
            (folder / one / "file").write_bytes(content)
        (folder / "users").write_text(f"DOMAIN:{USER}:{PASSWORD}\n")
        shutil.copy(realm.keytab, folder / "keytab")
        shutil.copy(realm.folder / "krb5.conf", folder / "krb5.conf")
        self.port = free_port()
        self.base = f"http://localhost:{self.port}"
        self.log = folder / "access.log"
        self.log.touch()  # The server may listen before it opens its log.
        modules = ["mpm_event", "alias", "authn_core", "authz_core", "authz_user", "auth_gssapi", "headers"]
        load = "\n".join(f"LoadModule {name}_module /usr/lib/apache2/modules/mod_{name}.so" for name in modules)
        configuration = folder / "httpd.conf"
        configuration.write_text(load + "\n" + textwrap.dedent(f"""
            ServerName localhost
            Listen 127.0.0.1:{self.port}
            PidFile {folder}/httpd.pid
            DefaultRuntimeDir {folder}
            Mutex file:{folder}
            ErrorLog {folder}/error.log
            LogFormat "%>s %m %U%q" short
            CustomLog {self.log} short
            Header always set X-User "expr=%{{REMOTE_USER}}"
            Alias /kerberos {folder}/kerberos
            Alias /bound {folder}/bound
            Alias /ntlm {folder}/ntlm
            """) + "".join(f"<Location /{name}>\nAuthType GSSAPI\nRequire valid-user\n{more}\n</Location>\n" for name, more in {
                "kerberos": f"GssapiCredStore keytab:{folder}/keytab",
                "bound": f"GssapiCredStore keytab:{folder}/keytab\nGssapiConnectionBound On",
                "ntlm": "GssapiAllowedMech ntlmssp\nGssapiConnectionBound On"}.items()))
        environment = {**os.environ, "KRB5_CONFIG": str(folder / "krb5.conf"), "NTLM_USER_FILE": str(folder / "users"),
                       "KRB5RCACHENAME": "none:"}
        self.program = Program(
            find("apache2", "httpd"), "-X", "-f", configuration, "-d", folder, env=environment, **own(folder))
        self.program.wait_listening(self.port)

    def statuses(self, target, count):
        """The statuses of the requests for a path with query so far; see `logged`."""
        return [int(words[0]) for words in logged(self.log, target, count)]

    def end(self):
        self.program.end()
        shutil.rmtree(self.folder, ignore_errors=True)
