/// The parameters of permessage-deflate as they stand in an offer or a response, each at most once and well-formed by
/// itself.
struct DeflateParameterReading {
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
    init?(_ named: NamedExtension) {
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
