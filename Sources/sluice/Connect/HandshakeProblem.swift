import GatewayCore
import WebSocketProtocol

/// What of an opening handshake was typed wrong, by the option that it came from.
enum HandshakeProblem {
    static func note(_ error: HandshakeUsageError, in reader: inout OptionReader) {
        switch error {
        case .malformedField(let field):
            reader.note(
                "--header", expected: "a header field without control characters",
                found: QuotedText.quoted("\(field.name): \(field.value)"))
        case .reservedField(let name):
            reader.note(
                "--header", expected: "no field of the opening handshake itself", found: QuotedText.quoted(name),
                remedy: "leave it out; --subprotocol and --compress ask for what these fields say")
        case .malformedSubprotocol(let name):
            reader.note("--subprotocol", expected: "a token", found: QuotedText.quoted(name))
        case .repeatedSubprotocol(let name):
            reader.note("--subprotocol", expected: "each name once", found: "\(QuotedText.quoted(name)) twice")
        case .subprotocolsGivenTwice:
            reader.note(
                "--subprotocol", expected: "nothing beside --header 'Sec-WebSocket-Protocol: …'", found: "both",
                remedy: "leave the header out")
        case .malformedAuthority(let text):
            reader.note("--header", expected: "a host, and maybe a port, in Host", found: QuotedText.quoted(text))
        case .malformedTarget(let text):
            reader.note("URL", expected: "a path of visible ASCII characters", found: QuotedText.quoted(text))
        case .malformedOffer:
            reader.note("--compress", expected: "windows of 8 to 15 bits", found: "others")
        }
    }
}
