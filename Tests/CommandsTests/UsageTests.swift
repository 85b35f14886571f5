import Testing

@Suite("Invalid command lines")
struct UsageTests {
    /// A command line after `$`, its exit code, and its lines on standard error; words are separated by spaces, or
    /// quoted with `'`.
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

    private static let connections = #"""
        $ ls --bogus
        64
        sluice: unknown option '--bogus'; see 'sluice ls --help'
        $ ls too many
        64
        sluice: 2 unexpected arguments: 'too', 'many'; see 'sluice ls --help'
        $ ls --limit 0
        64
        --limit: expected a whole number from 1 to 100000000, found "0"
        $ ls --listener '' --kind ws
        64
        --listener: is empty; give a value, or leave --listener out
        $ drain --kind ws --label ''
        64
        --label: is empty; give a value, or leave --label out
        $ events --route ''
        64
        --route: is empty; give a value, or leave --route out
        $ ls --interval 1ms
        64
        --interval: expected a duration from 100ms to 1h, found "1ms"
        $ ls --fields id
        64
        --fields: requires --json
        $ ls --min-age x --max-age y --min-idle z
        64
        --min-age: expected a duration from 0s to 365d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --max-age: expected a duration from 0s to 365d, found "y"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --min-idle: expected a duration from 0s to 365d, found "z"; write it like 500ms, 25s, 1m30s, 1h or 7d
        $ ls --token a --token-file b
        64
        --token: cannot be combined with --token-file
        $ ls --token 'a b'
        64
        --token: expected a token of letters, digits and -._~+/=; 'sluice token' creates one
        $ ls --token-file /nowhere
        78
        sluice: --token-file: /nowhere: No such file or directory
        $ ls --control-key /x
        64
        --control-key: requires --control-certificate
        $ ls --control-certificate /x
        64
        --control-certificate: requires --control-key
        $ ls --control-ca /nowhere
        78
        sluice: --control-ca: /nowhere: No such file or directory
        $ show
        64
        sluice: missing expected argument '<ID>'; see 'sluice show --help'
        $ show ''
        64
        sluice: the ID is empty; 'sluice ls' lists the connections; see 'sluice show --help'
        $ users ''
        64
        ID: is empty
        $ rooms '' --members
        64
        NAME: is empty
        $ routes '' --delete
        64
        NAME: is empty
        $ close ''
        64
        ID: is empty
        $ show 1 --fields id
        64
        --fields: requires --json
        $ open
        64
        sluice: missing expected argument '<URL>'; see 'sluice open --help'
        $ open ws://127.0.0.1:1/ --max-message-size 0
        64
        --max-message-size: expected a size from 1B to 256MiB, found "0"
        $ open ws://127.0.0.1:1/ --priority high --label nonsense
        64
        --priority: expected a number from 0 to 1, found "high"
        --label: expected NAME=VALUE, found "nonsense"; for example --label team=blue
        $ open ws://127.0.0.1:1/ --keep-alive-probes 0 --keep-alive-idle x --keep-alive-interval x --user-timeout x
        64
        --keep-alive-idle: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --keep-alive-interval: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --keep-alive-probes: expected a whole number from 1 to 127, found "0"
        --user-timeout: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        $ open ws://127.0.0.1:1/ --ping-interval x --pong-timeout x --connect-timeout x --handshake-timeout x
        64
        --ping-interval: expected a duration from 0s to 1d, or none, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --pong-timeout: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --connect-timeout: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --handshake-timeout: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        $ open ws://127.0.0.1:1/ -H 'no colon'
        64
        --header: expected a header field as Name: value, found "no colon"; for example 'Authorization: Bearer …'
        $ open ws://127.0.0.1:1/ -H nonsense
        64
        --header: expected a header field as Name: value, found "nonsense"; for example 'Authorization: Bearer …'
        $ open wss://127.0.0.1:1/ --ca /nowhere
        78
        sluice: --ca: /nowhere: No such file or directory
        $ send
        64
        sluice: missing expected argument '<ID>'; see 'sluice send --help'
        $ send 1 --hex
        64
        --hex: requires TEXT
        $ send 1 --crlf
        64
        --crlf: requires TEXT
        $ send 1 xyz --hex
        64
        --hex: expected pairs of hexadecimal digits, found "xyz"; for example --hex '00 ff 7f'
        $ send 1 --hex 0g
        64
        --hex: expected pairs of hexadecimal digits, found "0g"; for example --hex '00 ff 7f'
        $ send 1 00 --hex --crlf
        64
        --hex: cannot be combined with --crlf
        $ send 1 a --timeout x
        64
        --timeout: expected a duration from 0s to 10m, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        $ receive
        64
        sluice: missing expected argument '<ID>'; see 'sluice receive --help'
        $ receive 1 --timeout x
        64
        --timeout: expected a duration from 0s to 10m, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        $ receive 1 --timeout 11m
        64
        --timeout: expected a duration from 0s to 10m, found "11m"
        $ receive 1 --max 0
        64
        --max: expected a size from 1B to 1MiB, found "0"
        $ attach
        64
        sluice: missing expected argument '<ID>'; see 'sluice attach --help'
        $ ping
        64
        sluice: missing expected argument '<ID>'; see 'sluice ping --help'
        $ ping 1 --count 0 --interval 2h
        64
        --count: expected a whole number from 1 to 1000000, found "0"
        --interval: expected a duration from 0s to 1h, found "2h"
        $ close
        64
        sluice: missing expected argument '<ID> ...'; see 'sluice close --help'
        $ close 1 --code 999
        64
        --code: expected a close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999, found "999"; 4000 to 4999 are for private use
        $ close 1 --code 1005
        64
        --code: expected a close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999, found "1005"; 4000 to 4999 are for private use
        $ close --nonsense 1
        64
        sluice: unknown option '--nonsense'; see 'sluice close --help'
        $ close 1 --abort --reason x
        64
        --reason: cannot be combined with --abort
        $ close 1 --code 1000 --abort
        64
        --code: cannot be combined with --abort
        $ close 1 --reason x --read
        64
        --reason: cannot be combined with --read or --write
        $ close 1 --abort --write
        64
        --abort: cannot be combined with --read or --write
        $ suspend
        64
        sluice: missing expected argument '<ID>'; see 'sluice suspend --help'
        $ resume
        64
        sluice: missing expected argument '<ID>'; see 'sluice resume --help'
        $ secure
        64
        sluice: missing expected argument '<ID>'; see 'sluice secure --help'
        $ secure 1 --timeout 0s
        64
        --timeout: expected a duration from 1ms to 10m, found "0s"
        $ secure 1 --ca /nowhere
        78
        sluice: --ca: /nowhere: No such file or directory
        $ set 1
        64
        sluice set: expected --description, --priority, --label or --no-labels
        $ set 1 --priority=nan
        64
        --priority: expected a number from 0 to 1, found "nan"
        $ set 1 --priority=inf
        64
        --priority: expected a number from 0 to 1, found "inf"
        $ set 1 --priority=-inf
        64
        --priority: expected a number from 0 to 1, found "-inf"
        $ set 1 --priority=1e400
        64
        --priority: expected a number from 0 to 1, found "1e400"
        $ set 1 --priority=-0.1
        64
        --priority: expected a number from 0 to 1, found "-0.1"
        $ set 1 --priority=1.1
        64
        --priority: expected a number from 0 to 1, found "1.1"
        $ get http://127.0.0.1:1/ --priority 1e400
        64
        --priority: expected a number from 0 to 1, found "1e400"
        $ set 1 --no-labels --label a=b
        64
        --no-labels: cannot be combined with --label
        $ tap
        64
        sluice: missing expected argument '<ID>'; see 'sluice tap --help'
        $ tap 1 --max 1MiB
        64
        --max: expected a size from 0B to 64KiB, found "1MiB"
        $ tap 1 --sample 0
        64
        --sample: expected a whole number from 1 to 1000000, found "0"
        """#

    private static let service = #"""
        $ get
        64
        sluice get: expected URL, or --resume ID
        $ get http://x/ --overwrite
        64
        --overwrite: requires --to
        $ get http://x/ --resume 1
        64
        --resume: cannot be combined with URL or --to
        $ get --resume 1 --to /x
        64
        --resume: cannot be combined with URL or --to
        $ get http://x/ --fresh
        64
        --fresh: requires --to or --resume
        $ get --resume 1 -H a:b --timeout 5s --label a=b
        64
        --header: cannot be combined with --resume
        --timeout: cannot be combined with --resume
        --label: cannot be combined with --resume
        $ get http://x/ --json --output -
        64
        --output: cannot be standard output with --json
        $ get http://x/ --background --output x
        64
        --output: cannot be combined with --background; fetch the content later with 'sluice get --resume ID -o FILE'
        $ get http://x/ --timeout 0s --idle-timeout 0s
        64
        --idle-timeout: expected a duration from 1ms to 366d, found "0s"
        --timeout: expected a duration from 1ms to 366d, found "0s"
        $ put
        64
        sluice put: expected FILE and URL, or --resume ID
        $ put /nowhere http://x/
        78
        sluice: /nowhere: no such file
        $ put /dev/null http://x/
        78
        sluice: /dev/null: is not a regular file
        $ put only-a-file
        64
        sluice put: expected FILE and URL, or --resume ID
        $ put /etc/hosts http://x/ --background
        64
        --background: requires --remote
        $ put --remote /etc/hosts http://x/ --background --output x
        64
        --output: cannot be combined with --background
        $ put --resume 1 --remote -X POST
        64
        --remote: cannot be combined with --resume
        --method: cannot be combined with --resume
        $ put /tmp http://x/
        78
        sluice: /tmp: is a directory
        $ health extra
        64
        sluice: unexpected argument 'extra'; see 'sluice health --help'
        $ events --after x
        64
        --after: expected 0 or the position of an event, found "x"; 'sluice events --json' prints positions
        $ events --after 17@a,5
        64
        --after: expected 0 or the position of an event, found "17@a,5"; 'sluice events --json' prints positions
        $ events --after 5b1c8fa0.x
        64
        --after: expected 0 or the position of an event, found "5b1c8fa0.x"; 'sluice events --json' prints positions
        $ drain
        64
        sluice drain: expected a selection of connections, or --all; --preview only counts the connections
        $ drain --all --reason xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
        64
        --reason: expected a close reason of at most 123 bytes, found "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…"
        $ drain --all --rate 0
        64
        --rate: expected a whole number from 1 to 100000, found "0"
        $ drain --all --code 1 --jitter x --deadline x
        64
        --code: expected a close code: 1000 to 1003, 1007 to 1014 or 3000 to 4999, found "1"; 4000 to 4999 are for private use
        --jitter: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        --deadline: expected a duration from 0s to 1d, found "x"; write it like 500ms, 25s, 1m30s, 1h or 7d
        $ reload x
        64
        sluice: unexpected argument 'x'; see 'sluice reload --help'
        $ listeners --delete
        64
        NAME: required with --delete, --put and --patch
        $ listeners web --delete --patch {}
        64
        --delete: --delete, --put and --patch cannot be combined
        $ listeners web --dry-run
        64
        --dry-run: requires --delete, --put or --patch
        $ routes --put /nowhere
        64
        NAME: required with --delete, --put and --patch
        $ routes x --put /nowhere
        78
        sluice: --put: /nowhere: No such file or directory
        $ upstreams --patch {}
        64
        NAME: required with --delete, --put and --patch
        """#

    private struct Case: CustomTestStringConvertible {
        let line: String
        let code: Int32
        let errors: String

        var testDescription: String { self.line }

        var words: [String] {
            self.line.split(separator: "'", omittingEmptySubsequences: false).enumerated().flatMap { index, part in
                index.isMultiple(of: 2) ? part.split(separator: " ").map(String.init) : [String(part)]
            }
        }
    }

    private static func cases(_ text: String) -> [Case] {
        text.split(separator: "$ ").map { block in
            let lines = block.split(separator: "\n")
            return Case(
                line: String(lines[0]), code: Int32(lines[1]) ?? 0,
                errors: lines.dropFirst(2).joined(separator: "\n") + "\n")
        }
    }

    @Test func environmentVariableThatNamesAnUnusableFileIsNamed() async {
        let run = await CommandRun.of("ls", variables: ["SLUICE_TOKEN_FILE": "/nowhere"])
        #expect(run.code == 78)
        #expect(run.errors == "sluice: SLUICE_TOKEN_FILE: /nowhere: No such file or directory\n")
    }

    private static func expectRefused(_ one: Case) async {
        let run = await CommandHost().run(one.words)
        #expect(run.code == one.code)
        #expect(run.errors == one.errors)
        #expect(run.output == "" && run.gateways.isEmpty)
    }

    @Test(arguments: cases(gateway))
    private func gatewayCommandIsRefused(_ one: Case) async {
        await Self.expectRefused(one)
    }

    @Test(arguments: cases(client))
    private func clientCommandIsRefused(_ one: Case) async {
        await Self.expectRefused(one)
    }

    @Test(arguments: cases(connections))
    private func connectionCommandIsRefused(_ one: Case) async {
        await Self.expectRefused(one)
    }

    @Test(arguments: cases(service))
    private func serviceCommandIsRefused(_ one: Case) async {
        await Self.expectRefused(one)
    }
}
