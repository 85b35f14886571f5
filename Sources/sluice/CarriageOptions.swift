import ArgumentParser
import GatewayCore

/// Options of a bridge about what it carries.
struct CarriageOptions: ParsableArguments {
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Subprotocol to offer to a WebSocket target, or to accept from WebSocket clients. Repeat for several, best first.",
            valueName: "name"))
    var subprotocol: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            How bytes and messages stand for each other: binary, text, lines, length-prefixed (4 bytes, big-endian) or base64. \
            (default: binary)
            """,
            valueName: "framing"))
    var framing: String?

    @Option(
        help: ArgumentHelp(
            """
            What follows when one direction is finished: hold keeps the other open, close delivers what is under way and closes, \
            signal marks the end with an empty binary message. (default: close)
            """,
            valueName: "policy"))
    var halfClose: String?

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Header for the handshake with a WebSocket target. Repeat for several.", valueName: "Name: value"))
    var header: [String] = []

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            Origin of pages that may connect, like https://app.example or https://*.example; null for pages without one (sandboxed \
            frames, files), '*' for all. Repeat for several. (default: '*')
            """,
            valueName: "origin"))
    var origin: [String] = []

    @Flag(help: "Compress WebSocket messages (permessage-deflate) where the peer can.")
    var compress = false

    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            """
            PROXY protocol: in accepts its header from clients on loopback, out sends one to the target (v2); v1 and v2 send that \
            version. Several with commas.
            """,
            valueName: "in|out|v1|v2"))
    var proxyProtocol: [String] = []

    var options: [BridgeRequest.Option] {
        BridgeRequest.options(
            (.subprotocol, self.subprotocol), (.framing, [self.framing]), (.halfClose, [self.halfClose]),
            (.header, self.header),
            (.origin, self.origin), (.proxyProtocol, self.proxyProtocol))
            + (self.compress ? [BridgeRequest.Option(.compress)] : [])
    }
}
