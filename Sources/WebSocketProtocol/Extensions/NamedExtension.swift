/// An extension with its parameters: one element of `Sec-WebSocket-Extensions` (RFC 6455 §9.1).
public struct NamedExtension: Equatable, Sendable {
    /// The registered name, such as `permessage-deflate`.
    public let name: String
    /// In the order written, repetitions included.
    public let parameters: [ExtensionParameter]

    public init(_ name: String, _ parameters: [ExtensionParameter] = []) {
        self.name = name
        self.parameters = parameters
    }

    /// The element as it goes into the header field.
    public var rendered: String {
        self.parameters.reduce(into: self.name) { text, parameter in
            text += "; " + parameter.name
            if let value = parameter.value { text += "=" + value }
        }
    }
}
