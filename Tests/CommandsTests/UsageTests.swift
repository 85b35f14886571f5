import Testing

@Suite("Invalid command lines of the gateway and the client")
struct UsageTests {
    private static let gateway = #"""
        $ nothing
        64
        sluice: there is no command 'nothing'; see 'sluice --help'
        $ serv
        64
        sluice: there is no command 'serv' (did you mean 'serve'?); see 'sluice --help'
        $ sned 1 x
        64
        sluice: there is no command 'sned' (did you mean 'send'?); see 'sluice --help'
        $ lisetners
        64
        sluice: there is no command 'lisetners' (did you mean 'listeners'?); see 'sluice --help'
        $ help nothing
        64
        sluice: there is no command 'nothing'; see 'sluice --help'
        $ help lss --help
        64
        sluice: there is no command 'lss' (did you mean 'ls'?); see 'sluice --help'
        $ LS
        64
        sluice: there is no command 'LS' (did you mean 'ls'?); see 'sluice --help'
        $ --nothing
        64
        sluice: unknown option '--nothing'; see 'sluice --help'
        $ --generate-completion-script csh
        64
        sluice: can't generate completion scripts for 'csh'. Please use --generate-completion-script=<shell> with one of: zsh bash fish; see 'sluice --help'
        $ serve extra
        64
        sluice: unexpected argument 'extra'; see 'sluice serve --help'
        $ serve --log-format xml
        64
        sluice: the value 'xml' is invalid for '--log-format <format>'. Please provide one of 'text' and 'json'; see 'sluice serve --help'
        $ serve --config
        64
        sluice: missing value for '--config <file>'; see 'sluice serve --help'
        $ check
        64
        sluice: missing expected argument '--config <file>'; see 'sluice check --help'
        $ check --config /nowhere.yaml
        78
        /nowhere.yaml: no such file
        $ check --config /tmp
        78
        /tmp: is not a file
        $ bridge
        64
        sluice: missing expected argument '<LISTEN>'; see 'sluice bridge --help'
        $ bridge --cert x ws://127.0.0.1:0 echo
        64
        sluice: unknown option '--cert'. Did you mean '--certificate'?; see 'sluice bridge --help'
        $ bridge ws://127.0.0.1:0
        64
        TARGET: expected an address to connect to, echo or chat, found nothing; add it, or --targets FILE
        $ bridge ws://127.0.0.1:0 --targets vnc.tokens --require-target
        64
        --require-target: expected TARGET with it, found --targets; leave it out
        $ bridge ws://127.0.0.1:99999 tcp://127.0.0.1:1
        64
        LISTEN: expected a port from 0 to 65535, found "ws://127.0.0.1:99999"
        $ bridge tcp://127.0.0.1:0 tcp://127.0.0.1:1 --proxy ftp://p.example
        64
        --proxy: expected a proxy's URL or none, found "ftp://p.example"; write it like http://proxy.example:3128
        $ bridge tcp://127.0.0.1:0 echo --proxy http://p.example
        64
        --proxy: expected TARGET to be an address, found "echo"; leave out --proxy
        $ bridge tcp://127.0.0.1:0 unix:///run/far.sock --proxy http://p.example
        64
        --proxy: expected no proxy beside the endpoint of a Unix socket, found "http://p.example:80"; leave the proxy out
        $ bridge tcp://127.0.0.1:0 ws://127.0.0.1:1/ --framing json
        64
        --framing: expected one of binary, text, lines, length-prefixed, base64, found "json"
        $ bridge tcp://127.0.0.1:0 ws://127.0.0.1:1/ --half-close never --ping-interval 0s --max-connections 0
        64
        --max-connections: expected a whole number from 1 to 10000000, found "0"
        --half-close: expected one of hold, close, signal, found "never"
        --ping-interval: expected a duration from 1s to 1d, or none, found "0s"
        $ bridge tcp://127.0.0.1:0 ws://127.0.0.1:1/ --header nonsense
        64
        --header: expected a header as Name: value, found "nonsense"
        $ bridge ws://127.0.0.1:0 chat --origin nonsense
        64
        --origin: expected an origin: scheme, host and port, without a path, found "nonsense"; write it like https://app.example.com, "*" for all, or "null" in quotes for pages without an origin
        $ bridge tcp://127.0.0.1:0 echo --proxy-protocol v3
        64
        --proxy-protocol: expected one of in, out, v1, v2, found "v3"; separate several with commas, like in,v1
        $ bridge tcp://127.0.0.1:0 tcp://127.0.0.1:1 --subprotocol mqtt
        64
        --subprotocol: expected LISTEN or TARGET to begin with ws:// or wss://, found "tcp://127.0.0.1:0" and "tcp://127.0.0.1:1"; change it, or leave out --subprotocol
        $ bridge wss://127.0.0.1:0 echo
        64
        --certificate: expected a certificate for LISTEN, found none; add --certificate FILE and --key FILE, or begin LISTEN with ws://
        $ bridge ws://127.0.0.1:0 echo --certificate /nowhere.pem
        64
        --certificate: expected LISTEN to begin with tls:// or wss://, found "ws://127.0.0.1:0"; change it, or leave out --certificate
        $ bridge wss://127.0.0.1:0 echo --certificate /nowhere.pem --key /nowhere.key
        78
        --certificate: expected a file that can be read, found no such file at "/nowhere.pem"; check the path and its permissions for the user that sluice runs as
        --key: expected a file that can be read, found no such file at "/nowhere.key"; check the path and its permissions for the user that sluice runs as
        $ bridge tcp://127.0.0.1:0 echo --require-target
        64
        --require-target: expected TARGET to be an address, found "echo"; leave it out
        $ bridge tcp://127.0.0.1:0 echo --log-level loud --log-format xml
        64
        --log-format: expected one of text, json, found "xml"
        --log-level: expected one of trace, debug, info, notice, warning, error, critical, found "loud"
        """#

    private static let client = #"""
        $ connect
        64
        sluice: missing expected argument '<URL>'; see 'sluice connect --help'
        $ connect --cert x ws://127.0.0.1:1/
        64
        sluice: unknown option '--cert'. Did you mean '--certificate'?; see 'sluice connect --help'
        $ connect ws://127.0.0.1:1/ --origin http://a -H 'origin: http://b'
        64
        --origin: expected one Origin, found several; leave out all but one of --origin and --header 'Origin: …'
        $ connect ws://127.0.0.1:1/ -H 'Origin: http://a' -H 'Origin: http://b'
        64
        --header: expected one Origin, found several; leave out all but one of --origin and --header 'Origin: …'
        $ connect nonsense
        64
        URL: expected a URL with ://, found "nonsense"; write it like ws://127.0.0.1:8080 or tcp://127.0.0.1:5900
        $ connect http://127.0.0.1/
        64
        URL: expected a URL that begins with tcp, tls, unix, ws or wss, found "http://127.0.0.1/"; for WebSocket, write ws://
        $ connect ws://127.0.0.1:1/ --close-code 1005
        64
        --close-code: expected a close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999, found "1005"; 4000 to 4999 are for private use
        $ connect ws://127.0.0.1:1/ --close-reason xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        64
        --close-reason: expected a close reason of at most 123 bytes, found "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
        $ connect ws://127.0.0.1:1/ --wait 5
        64
        --wait: expected a duration from 0s to 1d, or none, found "5"; add a unit: 5s is seconds
        $ connect ws://127.0.0.1:1/ --subprotocol 'a b'
        64
        --subprotocol: expected a subprotocol: letters, digits and !#$%&'*+-.^_`|~, found "a b"; list each one separately
        $ connect ws://127.0.0.1:1/ --crlf
        64
        --crlf: only valid for tcp, tls or unix, not for "ws://127.0.0.1:1/"
        $ connect tcp://127.0.0.1:1 --header a:b --text --compress
        64
        --header: only valid for ws or wss, not for "tcp://127.0.0.1:1"
        --compress: only valid for ws or wss, not for "tcp://127.0.0.1:1"
        --text: only valid for ws or wss, not for "tcp://127.0.0.1:1"
        $ connect tcp://127.0.0.1:1 --insecure --ca /x
        64
        --insecure: only valid for tls or wss, or with --starttls, not for "tcp://127.0.0.1:1"
        --ca: only valid for tls or wss, or with --starttls, not for "tcp://127.0.0.1:1"
        $ connect ws://127.0.0.1:1/ --insecure
        64
        --insecure: only valid for tls or wss, not for "ws://127.0.0.1:1/"
        $ connect ws://127.0.0.1:1/ --text --binary
        64
        --text: cannot be combined with --binary
        $ connect ws://127.0.0.1:1/ --lines
        64
        --lines: requires --binary on a WebSocket; text is sent by lines anyway
        $ connect wss://127.0.0.1:1/ --insecure --ca /dev/null
        64
        --insecure: cannot be combined with --ca
        $ connect ws://127.0.0.1:1/ --quiet --verbose
        64
        --quiet: cannot be combined with --verbose
        $ connect wss://127.0.0.1:1/ --key /x
        64
        --key: requires --certificate
        $ connect ws://127.0.0.1:1/ --wait x --timeout 1ms --max-message-size 0 --ping-interval 1ms --pong-timeout 0s
        64
        --timeout: expected a duration from 10ms to 10m, found "1ms"
        --wait: expected a duration from 0s to 1d, or none, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --max-message-size: expected a size from 1B to 1GiB, found "0"
        --ping-interval: expected a duration from 1s to 1d, or none, found "1ms"
        --pong-timeout: expected a duration from 1s to 1h, found "0s"
        $ connect ws://127.0.0.1:1/ -H nonsense
        64
        --header: expected a header field as Name: value, found "nonsense"; for example 'Authorization: Bearer …'
        $ connect ws://127.0.0.1:1/ -H Upgrade:x
        64
        --header: "Upgrade" is set by the opening handshake itself; use --subprotocol and --compress instead
        $ connect ws://127.0.0.1:1/ -H @/nowhere
        78
        sluice: --header: /nowhere: No such file or directory
        $ connect ws://127.0.0.1:1/ --subprotocol a --subprotocol a
        64
        --subprotocol: "a" is given twice
        $ connect ws://127.0.0.1:1/{x}
        64
        URL: expected a path without { and }, found "/{x}"; percent-encode them as %7B and %7D
        $ connect tcp://127.0.0.1:1 --starttls nonsense
        64
        --starttls: expected smtp, imap, pop3, ftp, nntp, sieve, postgres or line:[GREETING:]REQUEST:CONSENT, found "nonsense"; for other protocols, use a form like line:STARTTLS:OK
        $ connect tls://127.0.0.1:1 --starttls smtp
        64
        --starttls: only valid for tcp or unix, not for "tls://127.0.0.1:1"
        $ connect ws://127.0.0.1:1/ --starttls smtp
        64
        --starttls: only valid for tcp or unix, not for "ws://127.0.0.1:1/"
        $ connect tls+unix:///tmp/x
        64
        --server-name: required to verify TLS on a Unix socket; for example --server-name localhost
        $ token
        64
        sluice: missing expected argument '--name <name>'; see 'sluice token --help'
        $ token --name x
        64
        sluice: missing expected argument '--scope <scope> ...'; see 'sluice token --help'
        $ token --name a/b --scope read
        64
        --name: expected a name of 1 to 64 letters, digits, -, _ and . that begins with a letter or digit, found "a/b"
        $ token --name x --scope all
        64
        --scope: expected one of read, operate, configure, metrics, found "all"
        $ token --name x --scope read --expires 1s
        64
        --expires: expected a duration from 1m to 3650d, or none, found "1s"
        """#

    @Test(arguments: RefusedCommandLine.all(in: gateway))
    private func gatewayCommandIsRefused(_ one: RefusedCommandLine) async {
        await one.expectRefused()
    }

    @Test(arguments: RefusedCommandLine.all(in: client))
    private func clientCommandIsRefused(_ one: RefusedCommandLine) async {
        await one.expectRefused()
    }
}
