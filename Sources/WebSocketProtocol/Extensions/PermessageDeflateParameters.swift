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
    public init?(_ named: NamedExtension) {
        guard let read = DeflateParameterReading(named), read.serverMaxWindowBits != .withoutValue,
            read.clientMaxWindowBits != .withoutValue
        else { return nil }
        self.init(
            serverNoContextTakeover: read.serverNoContextTakeover,
            clientNoContextTakeover: read.clientNoContextTakeover,
            serverMaxWindowBits: Self.bits(read.serverMaxWindowBits),
            clientMaxWindowBits: Self.bits(read.clientMaxWindowBits))
    }

    private static func bits(_ window: DeflateParameterReading.Window) -> Int? {
        if case .bits(let bits) = window { bits } else { nil }
    }

    /// Whether a server may answer `offer` with these parameters.
    ///
    /// What the client asked of the server must be granted, a window at most as large; what the server asks of the
    /// client's window must have been offered. The server may always limit itself and always ask for
    /// `client_no_context_takeover`.
    /// - Source: RFC 7692 §7.1.1 and §7.1.2.
    public func answers(_ offer: PermessageDeflateOffer) -> Bool {
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
    public func bindingClient(to offer: PermessageDeflateOffer) -> PermessageDeflateParameters {
        var bound = self
        bound.clientNoContextTakeover = self.clientNoContextTakeover || offer.clientNoContextTakeover
        if case .limited(let largest) = offer.clientWindow {
            bound.clientMaxWindowBits = min(self.clientMaxWindowBits ?? largest, largest)
        }
        return bound
    }

    /// The response as an element of the header field.
    public var named: NamedExtension {
        var parameters: [ExtensionParameter] = []
        if self.serverNoContextTakeover {
            parameters.append(ExtensionParameter(DeflateParameterReading.serverNoTakeover))
        }
        if self.clientNoContextTakeover {
            parameters.append(ExtensionParameter(DeflateParameterReading.clientNoTakeover))
        }
        if let bits = self.serverMaxWindowBits {
            parameters.append(ExtensionParameter(DeflateParameterReading.serverWindow, String(bits)))
        }
        if let bits = self.clientMaxWindowBits {
            parameters.append(ExtensionParameter(DeflateParameterReading.clientWindow, String(bits)))
        }
        return NamedExtension(DeflateParameterReading.extensionName, parameters)
    }
}
