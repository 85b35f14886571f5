/// One step of the talk before TLS.
enum StartTLSTurn: Sendable, Equatable {
    case send(String)
    case sendBytes([UInt8])
    /// A reply of lines with this number, the last one with a space behind it (RFC 5321 §4.2.1).
    case reply(String)
    /// As `reply`, and one of the lines is this keyword.
    case replyOffering(String, keyword: String)
    /// Lines are read over until one begins with one of `good`; one that begins with one of `bad` is a refusal.
    case line(good: [String], bad: [String])
    /// As `line`, and one of the lines read over holds this word.
    case lineOffering(String, good: [String], bad: [String])
    /// The very next line begins with this.
    case nextLine(String)
    case nextByte(UInt8)
}

extension StartTLSMode {
    var turns: [StartTLSTurn] {
        switch self {
        case .smtp:
            [
                .reply("220"), .send("EHLO localhost"), .replyOffering("250", keyword: "STARTTLS"),
                .send("STARTTLS"), .reply("220"),
            ]
        case .imap:
            // A server that greets with PREAUTH cannot be asked any more (RFC 9051 §6.2.1).
            [
                .line(good: ["* OK"], bad: ["* PREAUTH", "* BYE"]), .send("s1 STARTTLS"),
                .line(good: ["s1 OK"], bad: ["s1 NO", "s1 BAD", "* BYE"]),
            ]
        case .pop3: [.nextLine("+OK"), .send("STLS"), .nextLine("+OK")]
        case .ftp: [.reply("220"), .send("AUTH TLS"), .reply("234")]
        case .nntp: [.line(good: ["200", "201"], bad: ["4", "5"]), .send("STARTTLS"), .reply("382")]
        case .sieve:
            [
                .lineOffering("STARTTLS", good: ["OK"], bad: ["NO", "BYE"]), .send("STARTTLS"),
                .line(good: ["OK"], bad: ["NO", "BYE"]),
            ]
        case .postgres: [.sendBytes([0, 0, 0, 8, 0x04, 0xD2, 0x16, 0x2F]), .nextByte(UInt8(ascii: "S"))]
        case .line(let greeting, let request, let consent):
            (greeting.map { [.line(good: [$0], bad: [])] } ?? []) + [.send(request), .nextLine(consent)]
        }
    }
}
