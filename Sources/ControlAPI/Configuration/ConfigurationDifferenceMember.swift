/// One value that is other than it was. Values of credentials are hidden.
package struct ConfigurationDifferenceMember: Codable, Sendable, Equatable {
    /// From the resource on (RFC 6901); empty for the whole of it.
    package var pointer: String
    /// Missing where nothing was written.
    package var from: JSONValue?
    package var to: JSONValue?
    /// It has no effect before the next start.
    package var needsRestart: Bool?

    package init(pointer: String, from: JSONValue? = nil, to: JSONValue? = nil, needsRestart: Bool? = nil) {
        self.pointer = pointer
        self.from = from
        self.to = to
        self.needsRestart = needsRestart
    }
}
