/// Paths of the resource that is every connection.
package enum ConnectionPath {
    package static let all = "/v1/connections"

    package static func one(_ id: String) -> String {
        "\(self.all)/\(ControlRequest.segment(id))"
    }

    /// - Parameter verb: as `send`.
    package static func verb(_ verb: String, _ id: String) -> String {
        "\(self.one(id)):\(verb)"
    }
}
