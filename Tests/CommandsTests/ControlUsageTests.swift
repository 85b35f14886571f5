import Testing

@Suite("Invalid command lines for a running gateway")
struct ControlUsageTests {
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

    @Test func environmentVariableThatNamesAnUnusableFileIsNamed() async {
        let run = await CommandRun.of("ls", variables: ["SLUICE_TOKEN_FILE": "/nowhere"])
        #expect(run.code == 78)
        #expect(run.errors == "sluice: SLUICE_TOKEN_FILE: /nowhere: No such file or directory\n")
    }

    @Test(arguments: RefusedCommandLine.all(in: connections))
    private func connectionCommandIsRefused(_ one: RefusedCommandLine) async {
        await one.expectRefused()
    }

    @Test(arguments: RefusedCommandLine.all(in: service))
    private func serviceCommandIsRefused(_ one: RefusedCommandLine) async {
        await one.expectRefused()
    }
}
