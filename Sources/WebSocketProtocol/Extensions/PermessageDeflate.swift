/// A client's offer of permessage-deflate (RFC 7692 §7.1).
public struct PermessageDeflateOffer: Equatable, Sendable {
    /// Asks the server not to use context takeover.
    public var serverNoContextTakeover: Bool
    /// Announces that the client will not use context takeover.
    public var clientNoContextTakeover: Bool
    /// The base-2 logarithm of the server's largest window, 8 to 15; `nil` for no limit.
    public var serverMaxWindowBits: Int?
    /// Whether the server may limit the client's window.
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

    /// Parses an element of the header field.
    ///
    /// - Returns: `nil` if a server must decline the offer: another extension, an unknown or repeated parameter, an
    ///   unexpected or missing value, a window outside 8 to 15 (RFC 7692 §7.1).
    public init?(_ element: WebSocketExtension) {
        guard let parsed = ParsedDeflateParameters(element) else { return nil }
        self.serverNoContextTakeover = parsed.serverNoContextTakeover
        self.clientNoContextTakeover = parsed.clientNoContextTakeover
        switch parsed.serverMaxWindowBits {
        case .absent: self.serverMaxWindowBits = nil
        case .withoutValue: return nil
        case .bits(let bits): self.serverMaxWindowBits = bits
        }
        switch parsed.clientMaxWindowBits {
        case .absent: self.clientWindow = .notLimitable
        case .withoutValue: self.clientWindow = .limitable
        case .bits(let bits): self.clientWindow = .limited(bits)
        }
    }

    /// The offer as an element of the header field.
    public var extensionElement: WebSocketExtension {
        ParsedDeflateParameters.element(
            serverNoContextTakeover: self.serverNoContextTakeover,
            clientNoContextTakeover: self.clientNoContextTakeover,
            serverMaxWindowBits: self.serverMaxWindowBits, clientWindow: self.clientWindow)
    }
}

/// The accepted parameters of permessage-deflate (RFC 7692 §7.1).
public struct PermessageDeflateParameters: Equatable, Sendable {
    public var serverNoContextTakeover: Bool
    public var clientNoContextTakeover: Bool
    /// The parameter of the response, 8 to 15, or `nil`; see `serverWindowBits`.
    public var serverMaxWindowBits: Int?
    /// The parameter of the response, 8 to 15, or `nil`; see `clientWindowBits`.
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

    /// The base-2 logarithm of the window for the server's messages, 8 to 15.
    public var serverWindowBits: Int { self.serverMaxWindowBits ?? 15 }
    /// The base-2 logarithm of the window for the client's messages, 8 to 15.
    public var clientWindowBits: Int { self.clientMaxWindowBits ?? 15 }

    /// Parses the server's response.
    ///
    /// - Returns: `nil` if a client must fail the connection: another extension, an unknown or repeated parameter, a
    ///   value that is missing, unexpected or outside 8 to 15. Check `satisfies(_:)` as well.
    public init?(_ element: WebSocketExtension) {
        guard let parsed = ParsedDeflateParameters(element), parsed.serverMaxWindowBits != .withoutValue,
            parsed.clientMaxWindowBits != .withoutValue
        else { return nil }
        self.init(
            serverNoContextTakeover: parsed.serverNoContextTakeover,
            clientNoContextTakeover: parsed.clientNoContextTakeover,
            serverMaxWindowBits: Self.bits(parsed.serverMaxWindowBits),
            clientMaxWindowBits: Self.bits(parsed.clientMaxWindowBits))
    }

    private static func bits(_ window: ParsedDeflateParameters.Window) -> Int? {
        if case .bits(let bits) = window { bits } else { nil }
    }

    /// Whether a server may respond to `offer` with these parameters.
    ///
    /// The server must grant what the client requested, with at most the same window, and may limit the client's window
    /// only as offered. It may always limit itself and request `client_no_context_takeover`.
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

    /// Whether a client can use this response to `offer`: as `satisfies(_:)`, but a server may keep its context although it was
    /// asked not to. Tornado and Mojolicious do; it costs the client memory, and nothing fails.
    func isUsable(for offer: PermessageDeflateOffer) -> Bool {
        var offer = offer
        offer.serverNoContextTakeover = false
        return self.satisfies(offer)
    }

    /// These parameters with the limits that the client announced in `offer`, which the response need not repeat
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
        ParsedDeflateParameters.element(
            serverNoContextTakeover: self.serverNoContextTakeover,
            clientNoContextTakeover: self.clientNoContextTakeover,
            serverMaxWindowBits: self.serverMaxWindowBits,
            clientWindow: self.clientMaxWindowBits.map { .limited($0) } ?? .notLimitable)
    }
}

struct ParsedDeflateParameters {
    static let extensionName = "permessage-deflate"
    private static let serverNoTakeover = "server_no_context_takeover"
    private static let clientNoTakeover = "client_no_context_takeover"
    private static let serverWindow = "server_max_window_bits"
    private static let clientWindow = "client_max_window_bits"

    enum Window: Equatable {
        case absent
        case withoutValue
        case bits(Int)
    }

    private(set) var serverNoContextTakeover = false
    private(set) var clientNoContextTakeover = false
    private(set) var serverMaxWindowBits = Window.absent
    private(set) var clientMaxWindowBits = Window.absent

    /// - Returns: `nil` for another extension, and for a parameter that is unknown, repeated or has an invalid value.
    init?(_ element: WebSocketExtension) {
        guard element.name == Self.extensionName else { return nil }
        for parameter in element.parameters {
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

    static func element(
        serverNoContextTakeover: Bool, clientNoContextTakeover: Bool, serverMaxWindowBits: Int?,
        clientWindow: ClientWindowOffer
    ) -> WebSocketExtension {
        var parameters: [ExtensionParameter] = []
        if serverNoContextTakeover { parameters.append(ExtensionParameter(Self.serverNoTakeover)) }
        if clientNoContextTakeover { parameters.append(ExtensionParameter(Self.clientNoTakeover)) }
        if let bits = serverMaxWindowBits { parameters.append(ExtensionParameter(Self.serverWindow, String(bits))) }
        switch clientWindow {
        case .notLimitable: break
        case .limitable: parameters.append(ExtensionParameter(Self.clientWindow))
        case .limited(let bits): parameters.append(ExtensionParameter(Self.clientWindow, String(bits)))
        }
        return WebSocketExtension(Self.extensionName, parameters)
    }

    /// A decimal number from 8 to 15 without leading zeroes (RFC 7692 §7.1.2).
    private static func window(_ value: String?) -> Window? {
        guard let value else { return .withoutValue }
        return (8...15).first { String($0) == value }.map { .bits($0) }
    }
}

/// The client's window in an offer (RFC 7692 §7.1.2.2).
public enum ClientWindowOffer: Equatable, Sendable {
    /// No `client_max_window_bits`: the server must not limit the client's window.
    case notLimitable
    /// `client_max_window_bits` without a value: the server may choose a limit.
    case limitable
    /// `client_max_window_bits=N`, 8 to 15: the client uses at most this, and the server may choose less.
    case limited(Int)
}

/// The compression settings of an endpoint, client or server. Values outside their ranges are clamped.
public struct DeflatePolicy: Equatable, Sendable {
    /// Context takeover for our messages: smaller messages, but up to 256 KiB for each connection. Default: true.
    public var ownContextTakeover: Bool
    /// Context takeover for the peer's messages: smaller messages, but up to 40 KiB for each connection. Default: true. A
    /// server may keep its context even if this is false.
    public var peerContextTakeover: Bool
    /// Base-2 logarithm of the largest window for our messages, 8 to 15. Default: 15. 8 costs as much as 9.
    public var ownWindowBits: Int
    /// Base-2 logarithm of the largest window for the peer's messages, 8 to 15. Default: 15.
    public var peerWindowBits: Int
    /// Whether to decline compression with a peer that does not grant `peerWindowBits`. Default: false.
    public var requiresPeerWindow: Bool
    /// 1 (fastest) to 9 (smallest); 0 stores without compressing. Default: 6.
    public var level: Int
    /// zlib's memLevel, 1 to 9: 2^(memoryLevel + 9) bytes in addition to the window. Default: 8.
    public var memoryLevel: Int
    /// Messages shorter than this many bytes are sent uncompressed. Default: 64.
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

    /// A client's offers in order of preference.
    ///
    /// If a limit of the peer's window is not required, a second offer omits it, for servers that cannot limit theirs. Without a
    /// limit there is one offer: some servers accept each (libsoup), which no client may take for an answer.
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

    /// A server's response to the first acceptable offer.
    ///
    /// - Parameter offered: all extensions of the request; other extensions and malformed offers are ignored (RFC 7692
    ///   §7.1).
    /// - Returns: `nil` to decline compression.
    public func choose(among offered: [WebSocketExtension]) -> PermessageDeflateParameters? {
        for element in offered {
            if let offer = PermessageDeflateOffer(element), let accepted = self.accept(offer) { return accepted }
        }
        return nil
    }

    /// A server's response to one offer.
    ///
    /// A `server_max_window_bits` of 8 is granted: our deflater then never reaches back more than 250 bytes (RFC 7692
    /// §7.1.2.1).
    /// - Returns: `nil` if the offer does not allow the limit of the client's window that `requiresPeerWindow` demands.
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
