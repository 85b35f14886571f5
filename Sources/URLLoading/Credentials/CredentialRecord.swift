/// A credential in the file of a storage.
struct CredentialRecord: Codable {
    let host: String
    let port: Int
    let `protocol`: String?
    let proxyType: String?
    let realm: String?
    let method: String
    let user: String
    let password: String
    let persistence: UInt
    let isDefault: Bool

    /// - Returns: `nil` for one that is not to outlive the process.
    init?(_ credential: URLCredential, for space: URLProtectionSpace, isDefault: Bool) {
        guard [.permanent, .synchronizable].contains(credential.persistence), let user = credential.user,
            let password = credential.password
        else { return nil }
        self.host = space.host
        self.port = space.port
        self.protocol = space.protocol
        self.proxyType = space.proxyType
        self.realm = space.realm
        self.method = space.authenticationMethod
        self.user = user
        self.password = password
        self.persistence = credential.persistence.rawValue
        self.isDefault = isDefault
    }

    var space: URLProtectionSpace {
        URLProtectionSpace(
            URLProtectionSpace.Facts(
                host: self.host, port: self.port, protocol: self.protocol, proxyType: self.proxyType,
                realm: self.realm, method: self.method))
    }

    var credential: URLCredential {
        URLCredential(
            user: self.user, password: self.password,
            persistence: URLCredential.Persistence(rawValue: self.persistence) ?? .permanent)
    }
}
