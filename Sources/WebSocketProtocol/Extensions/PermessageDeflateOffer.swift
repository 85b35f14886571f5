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
    public init?(_ named: NamedExtension) {
        guard let read = DeflateParameterReading(named) else { return nil }
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
        switch self.clientWindow {
        case .notLimitable: break
        case .limitable: parameters.append(ExtensionParameter(DeflateParameterReading.clientWindow))
        case .limited(let bits):
            parameters.append(ExtensionParameter(DeflateParameterReading.clientWindow, String(bits)))
        }
        return NamedExtension(DeflateParameterReading.extensionName, parameters)
    }
}
