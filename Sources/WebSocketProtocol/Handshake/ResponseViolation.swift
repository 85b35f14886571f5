/// The rule that a server's 101 response breaks (RFC 6455 §4.1).
public enum ResponseViolation: Error, Equatable, Sendable {
    /// A 101 in a version of HTTP that knows no upgrade.
    case wrongHTTPVersion
    /// `Upgrade` is missing or something else than `websocket`.
    case missingUpgrade
    /// `Connection` does not hold `Upgrade`.
    case missingConnectionUpgrade
    /// `Sec-WebSocket-Accept` is missing, there twice, or does not answer our key.
    case wrongAccept
    /// There is more than one subprotocol.
    case severalSubprotocols
    /// The subprotocol is not among those that we offered.
    case subprotocolNotOffered(String)
    /// `Sec-WebSocket-Extensions` cannot be read.
    case malformedExtensions
    /// The extension is not among those that we offered.
    case extensionNotOffered(String)
    /// The extension is accepted twice.
    case repeatedExtension(String)
    /// The parameters do not answer any of our offers of this extension (RFC 7692 §7.1).
    case illegalExtensionParameters(String)
}
