/// Where a listener can be reached.
package struct ListenerStatus: Codable, Sendable, Equatable {
    /// With the port that the system picked, where it did.
    package var address: String

    package init(address: String) {
        self.address = address
    }
}
