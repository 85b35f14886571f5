import GatewayConfiguration
import HTTPTypes
import WireText

/// Identifies programs that call the server API by their key.
struct APIKeyAuthenticator: Sendable {
    /// Longest key, in bytes.
    private static let keyLimit = 512

    let keys: [RoomAPIKey]

    /// - Throws: `ControlProblem` 401 without a key, or with an unknown one.
    func authenticate(_ fields: HTTPFields) throws(ControlProblem) -> Caller {
        guard let text = Self.key(fields) else {
            throw Self.unauthorized("Send a key of rooms.api-keys as X-API-Key.")
        }
        guard text.utf8.count <= Self.keyLimit, let key = self.key(of: text) else {
            throw Self.unauthorized("The key is unknown.")
        }
        return Caller(name: "key:\(key.name)", scopes: [])
    }

    /// `X-API-Key: KEY`, or `Authorization: apikey KEY`.
    private static func key(_ fields: HTTPFields) -> String? {
        let values = fields[values: .apiKey]
        if let value = values.first { return values.count == 1 ? value : nil }
        let authorizations = fields[values: .authorization]
        guard authorizations.count == 1, let authorization = authorizations.first else { return nil }
        let parts = authorization.utf8.split(separator: UInt8(ascii: " "), maxSplits: 1).map { Substring($0) }
        guard parts.count == 2, parts[0].matchesIgnoringCase("apikey") else { return nil }
        return parts[1].trimmingBlanks
    }

    /// Compares with every key, so that the time taken does not depend on which one matches.
    private func key(of text: String) -> RoomAPIKey? {
        let digest = MessageDigest.of(Array(text.utf8), by: .sha256)
        return self.keys.reduce(nil) { found, key in key.hash.matches(digest) ? key : found }
    }

    private static func unauthorized(_ detail: String) -> ControlProblem {
        ControlProblem(401, "unauthorized", detail).with { $0.challenge = "apikey realm=\"sluice\"" }
    }
}
