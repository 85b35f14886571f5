/// One parameter of an extension, as `server_max_window_bits=10`.
public struct ExtensionParameter: Equatable, Sendable {
    /// As it was written; names of parameters are compared exactly.
    public let name: String
    /// `nil` where there is no `=`; a quoted value without its quotes and escapes.
    public let value: String?

    /// - Parameter value: a token, or `nil` for a parameter that needs none.
    public init(_ name: String, _ value: String? = nil) {
        self.name = name
        self.value = value
    }
}
