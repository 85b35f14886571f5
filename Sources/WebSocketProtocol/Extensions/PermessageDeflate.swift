/// One offer of permessage-deflate, as a client makes it (RFC 7692 §7.1).
public struct PermessageDeflateOffer: Equatable, Sendable {
    /// The client asks the server to begin every message afresh.
    public var serverNoContextTakeover: Bool
    /// The client says that it will begin every message afresh.
    public var clientNoContextTakeover: Bool
    /// The largest window with which the server may compress, as a power of two, 8 to 15; `nil` asks for no limit.
    public var serverMaxWindowBits: Int?
    /// What the server may ask of the client's window.
    public var clientWindow: ClientWindowOffer

    public init(
        serverNoContextTakeover: Bool = false, clientNoContextTakeover: Bool = false, serverMaxWindowBits: Int? = nil,
        clientWindow: ClientWindowOffer = .limitable
    ) {
        self.serverNoContextTakeover = serverNoContextTakeover
        self.clientNoContextTakeover = clientNoContextTakeover
        self.serverMaxWindowBits = serverMaxWindowBits
        self.clientWindow = clientWindow
    }

    /// Reads an element of the header field.
    ///
    /// - Returns: `nil` where a server must decline: another extension, an unknown or repeated parameter, a value
    ///   where none belongs or the other way round, a window outside 8 to 15 (RFC 7692 §7.1).
    public init?(_ named: WebSocketExtension) {
        guard let read = ParsedDeflateParameters(named) else { return nil }
        self.serverNoContextTakeover = read.serverNoContextTakeover
        self.clientNoContextTakeover = read.clientNoContextTakeover
        switch read.serverMaxWindowBits {
        case .absent: self.serverMaxWindowBits = nil
        case .withoutValue: return nil
        case .bits(let bits): self.serverMaxWindowBits = bits
        }
        switch read.clientMaxWindowBits {
        case .absent: self.clientWindow = .notLimitable
        case .withoutValue: self.clientWindow = .limitable
        case .bits(let bits): self.clientWindow = .limited(bits)
        }
    }

    /// The offer as an element of the header field.
    public var extensionElement: WebSocketExtension {
        var parameters: [ExtensionParameter] = []
        if self.serverNoContextTakeover {
            parameters.append(ExtensionParameter(ParsedDeflateParameters.serverNoTakeover))
        }
        if self.clientNoContextTakeover {
            parameters.append(ExtensionParameter(ParsedDeflateParameters.clientNoTakeover))
        }
        if let bits = self.serverMaxWindowBits {
            parameters.append(ExtensionParameter(ParsedDeflateParameters.serverWindow, String(bits)))
        }
        switch self.clientWindow {
        case .notLimitable: break
        case .limitable: parameters.append(ExtensionParameter(ParsedDeflateParameters.clientWindow))
        case .limited(let bits):
            parameters.append(ExtensionParameter(ParsedDeflateParameters.clientWindow, String(bits)))
        }
        return WebSocketExtension(ParsedDeflateParameters.extensionName, parameters)
    }
}

/// What both sides have agreed on: the parameters of an accepted permessage-deflate (RFC 7692 §7.1).
public struct PermessageDeflateParameters: Equatable, Sendable {
    /// The server begins every message afresh.
    public var serverNoContextTakeover: Bool
    /// The client begins every message afresh.
    public var clientNoContextTakeover: Bool
    /// As it stands in the response, 8 to 15, or `nil`; `serverWindowBits` is what follows from it.
    public var serverMaxWindowBits: Int?
    /// As it stands in the response, 8 to 15, or `nil`; `clientWindowBits` is what follows from it.
    public var clientMaxWindowBits: Int?

    public init(
        serverNoContextTakeover: Bool = false, clientNoContextTakeover: Bool = false, serverMaxWindowBits: Int? = nil,
        clientMaxWindowBits: Int? = nil
    ) {
        self.serverNoContextTakeover = serverNoContextTakeover
        self.clientNoContextTakeover = clientNoContextTakeover
        self.serverMaxWindowBits = serverMaxWindowBits
        self.clientMaxWindowBits = clientMaxWindowBits
    }

    /// The window that the server's messages need for inflating and must not leave when deflating, as a power of two,
    /// 8 to 15.
    public var serverWindowBits: Int { self.serverMaxWindowBits ?? 15 }
    /// The window that the client's messages need for inflating and must not leave when deflating, as a power of two,
    /// 8 to 15.
    public var clientWindowBits: Int { self.clientMaxWindowBits ?? 15 }

    /// Reads the response of a server.
    ///
    /// - Returns: `nil` where a client must fail the connection: another extension, an unknown or repeated parameter,
    ///   a value that is missing, superfluous or outside 8 to 15. Whether it answers an offer is a second question,
    ///   see `answers(_:)`.
    public init?(_ named: WebSocketExtension) {
        guard let read = ParsedDeflateParameters(named), read.serverMaxWindowBits != .withoutValue,
            read.clientMaxWindowBits != .withoutValue
        else { return nil }
        self.init(
            serverNoContextTakeover: read.serverNoContextTakeover,
            clientNoContextTakeover: read.clientNoContextTakeover,
            serverMaxWindowBits: Self.bits(read.serverMaxWindowBits),
            clientMaxWindowBits: Self.bits(read.clientMaxWindowBits))
    }

    private static func bits(_ window: ParsedDeflateParameters.Window) -> Int? {
        if case .bits(let bits) = window { bits } else { nil }
    }

    /// Whether a server may answer `offer` with these parameters.
    ///
    /// What the client asked of the server must be granted, a window at most as large; what the server asks of the
    /// client's window must have been offered. The server may always limit itself and always ask for
    /// `client_no_context_takeover`.
    /// - Source: RFC 7692 §7.1.1 and §7.1.2.
    public func satisfies(_ offer: PermessageDeflateOffer) -> Bool {
        if offer.serverNoContextTakeover, !self.serverNoContextTakeover { return false }
        if let largest = offer.serverMaxWindowBits {
            guard let granted = self.serverMaxWindowBits, granted <= largest else { return false }
        }
        switch offer.clientWindow {
        case .notLimitable: return self.clientMaxWindowBits == nil
        case .limitable: return true
        case .limited(let largest): return self.clientMaxWindowBits.map { $0 <= largest } ?? true
        }
    }

    /// These parameters with what the client has bound itself to by `offer`, which the response need not repeat
    /// (RFC 7692 §7.1.1.2 and §7.1.2.2).
    public func applyingClientLimits(of offer: PermessageDeflateOffer) -> PermessageDeflateParameters {
        var bound = self
        bound.clientNoContextTakeover = self.clientNoContextTakeover || offer.clientNoContextTakeover
        if case .limited(let largest) = offer.clientWindow {
            bound.clientMaxWindowBits = min(self.clientMaxWindowBits ?? largest, largest)
        }
        return bound
    }

    /// The response as an element of the header field.
    public var extensionElement: WebSocketExtension {
        var parameters: [ExtensionParameter] = []
        if self.serverNoContextTakeover {
            parameters.append(ExtensionParameter(ParsedDeflateParameters.serverNoTakeover))
        }
        if self.clientNoContextTakeover {
            parameters.append(ExtensionParameter(ParsedDeflateParameters.clientNoTakeover))
        }
        if let bits = self.serverMaxWindowBits {
            parameters.append(ExtensionParameter(ParsedDeflateParameters.serverWindow, String(bits)))
        }
        if let bits = self.clientMaxWindowBits {
            parameters.append(ExtensionParameter(ParsedDeflateParameters.clientWindow, String(bits)))
        }
        return WebSocketExtension(ParsedDeflateParameters.extensionName, parameters)
    }
}

/// The parameters of permessage-deflate as they stand in an offer or a response, each at most once and well-formed by
/// itself.
struct ParsedDeflateParameters {
    static let extensionName = "permessage-deflate"
    static let serverNoTakeover = "server_no_context_takeover"
    static let clientNoTakeover = "client_no_context_takeover"
    static let serverWindow = "server_max_window_bits"
    static let clientWindow = "client_max_window_bits"

    enum Window: Equatable {
        case absent
        case withoutValue
        case bits(Int)
    }

    private(set) var serverNoContextTakeover = false
    private(set) var clientNoContextTakeover = false
    private(set) var serverMaxWindowBits = Window.absent
    private(set) var clientMaxWindowBits = Window.absent

    /// - Returns: `nil` for another extension, and for a parameter that is unknown, repeated or has an impossible
    ///   value.
    init?(_ named: WebSocketExtension) {
        guard named.name == Self.extensionName else { return nil }
        for parameter in named.parameters {
            switch parameter.name {
            case Self.serverNoTakeover:
                guard parameter.value == nil, !self.serverNoContextTakeover else { return nil }
                self.serverNoContextTakeover = true
            case Self.clientNoTakeover:
                guard parameter.value == nil, !self.clientNoContextTakeover else { return nil }
                self.clientNoContextTakeover = true
            case Self.serverWindow:
                guard self.serverMaxWindowBits == .absent, let window = Self.window(parameter.value) else { return nil }
                self.serverMaxWindowBits = window
            case Self.clientWindow:
                guard self.clientMaxWindowBits == .absent, let window = Self.window(parameter.value) else { return nil }
                self.clientMaxWindowBits = window
            default: return nil
            }
        }
    }

    /// A decimal number from 8 to 15 without leading zeroes (RFC 7692 §7.1.2).
    private static func window(_ value: String?) -> Window? {
        guard let value else { return .withoutValue }
        return (8...15).first { String($0) == value }.map { .bits($0) }
    }
}

/// What an offer says about the window with which the client will compress (RFC 7692 §7.1.2.2).
public enum ClientWindowOffer: Equatable, Sendable {
    /// The parameter is absent: the server must not limit the client's window.
    case notLimitable
    /// `client_max_window_bits` alone: the server may choose a limit.
    case limitable
    /// `client_max_window_bits=N`: the client will not use more in any case, and the server may choose less. 8 to 15.
    case limited(Int)
}

/// How we want messages compressed, whichever side we are; nothing is compressed where there is no policy.
///
/// Values outside of their ranges are brought into them.
public struct DeflatePolicy: Equatable, Sendable {
    /// Whether our messages may refer to earlier ones: smaller, but up to 256 KiB stay with the connection. Default:
    /// yes.
    public var ownContextTakeover: Bool
    /// Whether the peer's messages may refer to earlier ones: smaller, but up to 40 KiB stay with the connection.
    /// Default: yes.
    public var peerContextTakeover: Bool
    /// Largest window for our messages, as a power of two, 8 to 15 (default). 8 costs as much as 9.
    public var ownWindowBits: Int
    /// Largest window that the peer may use, as a power of two, 8 to 15 (default).
    public var peerWindowBits: Int
    /// Whether to go without compression rather than with a peer that does not grant `peerWindowBits`. Default: no.
    public var requiresPeerWindow: Bool
    /// 1 (fastest) to 9 (smallest), 6 by default; 0 stores without compressing.
    public var level: Int
    /// Memory for the search beside the window, 1 to 9 (default 8): 2 to the power of this plus 9, in bytes.
    public var memoryLevel: Int
    /// Messages shorter than this many bytes go uncompressed. Default: 64.
    public var minimumSize: Int

    public init(
        ownContextTakeover: Bool = true, peerContextTakeover: Bool = true, ownWindowBits: Int = 15,
        peerWindowBits: Int = 15,
        requiresPeerWindow: Bool = false, level: Int = 6, memoryLevel: Int = 8, minimumSize: Int = 64
    ) {
        self.ownContextTakeover = ownContextTakeover
        self.peerContextTakeover = peerContextTakeover
        self.ownWindowBits = min(max(ownWindowBits, 8), 15)
        self.peerWindowBits = min(max(peerWindowBits, 8), 15)
        self.requiresPeerWindow = requiresPeerWindow
        self.level = min(max(level, 0), 9)
        self.memoryLevel = min(max(memoryLevel, 1), 9)
        self.minimumSize = max(minimumSize, 0)
    }

    /// What a client of this policy offers, the most wanted first.
    ///
    /// Where a limit of the peer's window is a wish only, a second offer goes without it, for servers that cannot
    /// limit theirs.
    public var offers: [PermessageDeflateOffer] {
        let wanted = PermessageDeflateOffer(
            serverNoContextTakeover: !self.peerContextTakeover, clientNoContextTakeover: !self.ownContextTakeover,
            serverMaxWindowBits: self.peerWindowBits < 15 ? self.peerWindowBits : nil,
            clientWindow: self.ownWindowBits < 15 ? .limited(self.ownWindowBits) : .limitable)
        guard wanted.serverMaxWindowBits != nil, !self.requiresPeerWindow else { return [wanted] }
        var fallback = wanted
        fallback.serverMaxWindowBits = nil
        return [wanted, fallback]
    }

    /// A server's choice among what the client offers: the first offer that it can accept wins.
    ///
    /// - Parameter offered: all extensions of the request; other extensions are passed over, and so are offers that
    ///   are not well-formed (RFC 7692 §7.1).
    /// - Returns: `nil` to go without compression.
    public func choose(among offered: [WebSocketExtension]) -> PermessageDeflateParameters? {
        for named in offered {
            if let offer = PermessageDeflateOffer(named), let accepted = self.accept(offer) { return accepted }
        }
        return nil
    }

    /// A server's answer to one offer.
    ///
    /// A `server_max_window_bits` of 8 is granted: our deflater never reaches back further than 250 bytes then (RFC
    /// 7692 §7.1.2.1).
    /// - Returns: `nil` only for an offer that lets us not limit the client's window, when we insist on that.
    public func accept(_ offer: PermessageDeflateOffer) -> PermessageDeflateParameters? {
        var accepted = PermessageDeflateParameters(
            serverNoContextTakeover: offer.serverNoContextTakeover || !self.ownContextTakeover,
            clientNoContextTakeover: offer.clientNoContextTakeover || !self.peerContextTakeover)
        if let largest = offer.serverMaxWindowBits {
            accepted.serverMaxWindowBits = min(largest, self.ownWindowBits)
        } else if self.ownWindowBits < 15 {
            accepted.serverMaxWindowBits = self.ownWindowBits
        }
        switch offer.clientWindow {
        case .notLimitable:
            if self.requiresPeerWindow, self.peerWindowBits < 15 { return nil }
        case .limitable:
            accepted.clientMaxWindowBits = self.peerWindowBits < 15 ? self.peerWindowBits : nil
        case .limited(let largest):
            accepted.clientMaxWindowBits = min(largest, self.peerWindowBits)
        }
        return accepted
    }
}
