import Foundation
import Synchronization

/// A store of credentials, for any number of threads. Those that are permanent are in a file of mode 0600 as well,
/// where the storage has one; it is written with each change.
open class URLCredentialStorage: NSObject, @unchecked Sendable {
    private static let sharedStorage = URLCredentialStorage(
        file: StorageLocation.credentials.appendingPathComponent(".credentials.shared"))

    private let shelf: Mutex<CredentialStore>
    private let file: URL?

    /// In memory alone, and empty.
    public override init() {
        self.shelf = Mutex(CredentialStore())
        self.file = nil
        super.init()
    }

    /// - Parameter file: of the permanent ones; is made when there is something to write.
    package init(file: URL) {
        self.shelf = Mutex(Self.read(file))
        self.file = file
        super.init()
    }

    /// The storage of this program, in the file `.credentials.shared` of its data folder.
    open class var shared: URLCredentialStorage { self.sharedStorage }

    /// By user; `nil` where there are none.
    open func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
        self.shelf.withLock { $0.credentials(for: space) }
    }

    open var allCredentials: [URLProtectionSpace: [String: URLCredential]] { self.shelf.withLock { $0.all } }

    /// Keeps the credential in place of the same user's. The first of a space becomes its default. One whose
    /// persistence is `none`, or that has no user, is not kept.
    open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.change { $0.set(credential, for: space) }
    }

    /// Takes the credential away, unless it is synchronizable.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.remove(credential, for: space, options: nil)
    }

    /// - Parameter options: `NSURLCredentialStorageRemoveSynchronizableCredentials` as `true` takes a synchronizable
    ///   one away too.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace, options: [String: Any]? = [:]) {
        let option = options?[NSURLCredentialStorageRemoveSynchronizableCredentials]
        let allowed = option as? Bool ?? (option as? NSNumber)?.boolValue ?? false
        guard credential.persistence != .synchronizable || allowed else { return }
        self.change { $0.remove(credential, for: space) }
    }

    /// What is tried first in this space; `nil` where there is none.
    open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        self.shelf.withLock { $0.defaultCredential(for: space) }
    }

    /// Makes the credential the space's default, and keeps it like `set(_:for:)`.
    open func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.change { $0.setDefault(credential, for: space) }
    }

    /// Forgets everything, in the file too.
    package func removeAll() { self.change { $0.removeAll() } }

    private func change(_ body: (inout CredentialStore) -> Bool) {
        let changed = self.shelf.withLock { shelf in
            guard body(&shelf) else { return false }
            if let file = self.file { Self.write(shelf, to: file) }
            return true
        }
        guard changed else { return }
        NotificationCenter.default.post(name: .NSURLCredentialStorageChanged, object: self)
    }

    private static func read(_ file: URL) -> CredentialStore {
        var shelf = CredentialStore()
        let records = (try? Data(contentsOf: file)).flatMap {
            try? PropertyListDecoder().decode([CredentialRecord].self, from: $0)
        }
        for record in records ?? [] {
            _ =
                record.isDefault
                ? shelf.setDefault(record.credential, for: record.space)
                : shelf.set(record.credential, for: record.space)
        }
        return shelf
    }

    private static func write(_ shelf: CredentialStore, to file: URL) {
        let records = shelf.all.flatMap { space, credentials in
            credentials.values.compactMap { credential in
                CredentialRecord(
                    credential, for: space, isDefault: shelf.defaultCredential(for: space) == credential)
            }
        }
        // Without anything to keep there is no need for a file, but an old one must not keep what was taken away.
        if records.isEmpty, !FileManager.default.fileExists(atPath: file.path) { return }
        guard let data = try? PropertyListEncoder().encode(records) else { return }
        _ = PrivateFile.write(data, to: file)
    }
}

extension Notification.Name {
    /// A storage of credentials, the notification's object, has others than before.
    public static let NSURLCredentialStorageChanged = Notification.Name("NSURLCredentialStorageChangedNotification")
}

/// The same for every task: a storage does not tell them apart. Completion handlers are called before the method
/// returns.
extension URLCredentialStorage {
    public func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) {
        completionHandler(self.credentials(for: protectionSpace))
    }

    public func credentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) async -> [String: URLCredential]? {
        self.credentials(for: protectionSpace)
    }

    public func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        self.set(credential, for: protectionSpace)
    }

    public func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: Any]? = [:],
        task: URLSessionTask
    ) {
        self.remove(credential, for: protectionSpace, options: options)
    }

    public func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        completionHandler(self.defaultCredential(for: space))
    }

    public func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
        self.defaultCredential(for: space)
    }

    public func setDefaultCredential(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) {
        self.setDefaultCredential(credential, for: protectionSpace)
    }
}

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

/// The credentials of a storage, by the space that they are for and by the user.
struct CredentialStore: Sendable {
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
        defer { self = CredentialStore() }
        return !self.spaces.isEmpty || !self.defaults.isEmpty
    }
}
