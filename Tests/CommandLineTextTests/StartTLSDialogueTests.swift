import CommandLineText
import Testing

@Suite("STARTTLS")
struct StartTLSDialogueTests {
    /// Runs the dialogue with a server's replies, in one piece after each request or byte by byte.
    private func transcript(_ mode: String, _ said: [String], byteByByte: Bool) throws -> (
        sent: [String], StartTLSDialogue.Action
    ) {
        var dialogue = StartTLSDialogue(try #require(StartTLSMode(mode)))
        var sent: [String] = []
        var said = said.map { Array($0.utf8) }
        while true {
            let order = dialogue.nextAction()
            switch order {
            case .send(let bytes): sent.append(String(decoding: bytes, as: UTF8.self))
            case .read:
                guard !said.isEmpty else { return (sent, .read) }
                let piece = byteByByte ? [said[0].removeFirst()] : said[0]
                if !byteByByte || said[0].isEmpty { said.removeFirst() }
                dialogue.received(piece)
            case .secure, .refused, .invalid: return (sent, order)
            }
        }
    }

    struct Vector: CustomTestStringConvertible, Sendable {
        let mode: String
        let said: [String]
        let sent: [String]
        var order = StartTLSDialogue.Action.secure

        var testDescription: String { "\(self.mode) \(self.said)" }
    }

    // The dialogues are the RFCs' own examples, shortened.
    static let agreements = [
        Vector(
            mode: "smtp",
            said: [
                "220 mail.imc.org SMTP\r\n", "250-mail.imc.org\r\n250-8BITMIME\r\n250-STARTTLS\r\n250 DSN\r\n",
                "220 Go ahead\r\n",
            ],
            sent: ["EHLO localhost\r\n", "STARTTLS\r\n"]),
        Vector(
            mode: "smtp", said: ["220-one\r\n220 two\r\n", "250-x\r\n250 starttls\r\n", "220-Go\r\n220 ahead\r\n"],
            sent: ["EHLO localhost\r\n", "STARTTLS\r\n"]),
        Vector(
            mode: "imap",
            said: ["* OK [CAPABILITY IMAP4rev2 STARTTLS] ready\r\n", "* CAPABILITY x\r\ns1 OK Begin TLS\r\n"],
            sent: ["s1 STARTTLS\r\n"]),
        Vector(mode: "imap", said: ["* OK ready\r\n", "s1 OK go\r\n"], sent: ["s1 STARTTLS\r\n"]),
        Vector(mode: "pop3", said: ["+OK ready\r\n", "+OK Begin TLS\r\n"], sent: ["STLS\r\n"]),
        Vector(
            mode: "ftp", said: ["220-Welcome\r\n  to this server\r\n220 ready\r\n", "234 AUTH TLS OK\r\n"],
            sent: ["AUTH TLS\r\n"]),
        Vector(mode: "nntp", said: ["200 ready\r\n", "382 Continue\r\n"], sent: ["STARTTLS\r\n"]),
        Vector(mode: "nntp", said: ["201 hi\r\n", "382 go\r\n"], sent: ["STARTTLS\r\n"]),
        Vector(mode: "sieve", said: ["\"STARTTLS\"\r\nOK\r\n", "OK\r\n"], sent: ["STARTTLS\r\n"]),
        Vector(
            mode: "sieve", said: ["\"IMPLEMENTATION\" \"x\"\r\n\"STARTTLS\"\r\nOK ready\r\n", "OK \"Begin TLS\"\r\n"],
            sent: ["STARTTLS\r\n"]),
        Vector(mode: "postgres", said: ["S"], sent: ["\0\0\0\u{8}\u{4}\u{FFFD}\u{16}/"]),
        Vector(mode: "line:STARTTLS:OK", said: ["ok go\n".uppercased()], sent: ["STARTTLS\r\n"]),
        Vector(mode: "line:HELLO:TLS:YES", said: ["banner\nhello\n", "YES\n"], sent: ["TLS\r\n"]),
    ]

    @Test(arguments: agreements, [false, true])
    func dialogueEndsInTLSWhenTheServerAgrees(_ vector: Vector, byteByByte: Bool) throws {
        let transcript = try self.transcript(vector.mode, vector.said, byteByByte: byteByByte)
        #expect(transcript.sent == vector.sent && transcript.1 == .secure)
    }

    @Test(arguments: [
        ("smtp", ["220 x\r\n", "250 x\r\n"], "the server does not offer STARTTLS"),
        ("smtp", ["220 x\r\n", "250 STARTTLS\r\n", "454 not now\r\n"], "454 not now"),
        ("smtp", ["554 go away\r\n"], "554 go away"), ("imap", ["* PREAUTH x\r\n"], "* PREAUTH x"),
        ("imap", ["* OK x\r\n", "s1 NO never\r\n"], "s1 NO never"), ("pop3", ["+OK\r\n", "-ERR no\r\n"], "-ERR no"),
        ("ftp", ["220 x\r\n", "502 no\r\n"], "502 no"), ("nntp", ["502 no\r\n"], "502 no"),
        ("sieve", ["OK ready\r\n"], "the server does not offer STARTTLS"),
        ("postgres", ["N"], "the server does not offer TLS"),
        ("line:TLS:YES", ["NO\r\n"], "NO"),
    ])
    func dialogueEndsWhenTheServerRefuses(_ mode: String, _ said: [String], _ answer: String) throws {
        #expect(try self.transcript(mode, said, byteByByte: false).1 == .refused(answer))
    }

    @Test(arguments: [
        ("smtp", ["220 x\r\n", "250 STARTTLS\r\n", "220 go\r\n250 injected\r\n"]), ("postgres", ["SE"]),
        ("imap", ["* OK x\r\n", "s1 OK go\r\n* x"]), ("smtp", ["SSH-2.0-x\r\n"]),
    ])
    func invalidReplyOrBytesAfterTheConsentFailTheDialogue(_ mode: String, _ said: [String]) throws {
        guard case .invalid = try self.transcript(mode, said, byteByByte: false).1 else {
            Issue.record("it went on")
            return
        }
    }

    @Test(arguments: ["220-x\r\n", "* x\r\n", "x"])
    func endlessTalkIsCutOff(_ piece: String) throws {
        var dialogue = StartTLSDialogue(piece.hasPrefix("*") ? .imap : .smtp)
        let pieces = Array(String(repeating: piece, count: 500).utf8)
        for _ in 0..<1000 where dialogue.nextAction() == .read { dialogue.received(pieces) }
        guard case .invalid = dialogue.nextAction() else {
            Issue.record("it went on")
            return
        }
    }

    @Test(arguments: [
        "", "xmpp", "line", "line:", "line:a", "line:a:", "line::b", "line:a:b:c:d", "line:é:b", "SMTP", "line:a\r:b",
    ])
    func unknownModeIsRejected(_ text: String) {
        #expect(StartTLSMode(text) == nil)
    }
}
