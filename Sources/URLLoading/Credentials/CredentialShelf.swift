/// The credentials of a storage, by the space that they are for and by the user.
struct CredentialShelf: Sendable {
    private var spaces: [URLProtectionSpace: [String: URLCredential]] = [:]
    private var defaults: [URLProtectionSpace: URLCredential] = [:]

    var all: [URLProtectionSpace: [String: URLCredential]] { self.spaces }

    func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? { self.spaces[space] }

    func defaultCredential(for space: URLProtectionSpace) -> URLCredential? { self.defaults[space] }

    /// The first of a space becomes its default. One that is not to be kept, or has no user, is left out.
    /// - Returns: whether anything changed.
    mutating func set(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        guard let user = credential.user, credential.persistence != .none else { return false }
        let changed = self.spaces[space]?[user] != credential
        self.spaces[space, default: [:]][user] = credential
        if self.defaults[space] == nil || self.defaults[space]?.user == user { self.defaults[space] = credential }
        return changed
    }

    /// One without a user may be a default too.
    mutating func setDefault(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        guard credential.persistence != .none else { return false }
        let changed = self.defaults[space] != credential
        let added = self.set(credential, for: space)
        self.defaults[space] = credential
        return changed || added
    }

    /// The default goes with it; no other takes its place.
    mutating func remove(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        var changed = false
        if let user = credential.user, self.spaces[space]?[user] == credential {
            self.spaces[space]?[user] = nil
            if self.spaces[space]?.isEmpty == true { self.spaces[space] = nil }
            changed = true
        }
        if self.defaults[space] == credential {
            self.defaults[space] = nil
            changed = true
        }
        return changed
    }

    mutating func removeAll() -> Bool {
        defer { self = CredentialShelf() }
        return !self.spaces.isEmpty || !self.defaults.isEmpty
    }
}
