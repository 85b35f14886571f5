import Foundation
import Synchronization

/// A thread-safe store of credentials. Permanent ones are also stored in a file of mode 0600, if the storage has one, which
/// is written on each change.
open class URLCredentialStorage: NSObject, @unchecked Sendable {  // Not final; its lock guards what changes.
    private static let sharedStorage = URLCredentialStorage(
        file: StorageLocation.credentials.appendingPathComponent(".credentials.shared"))

    private let store: Mutex<CredentialStore>
    private let file: URL?
    /// Asks a custom storage, whose methods may block, for loads.
    let queue = DispatchQueue(label: "URLLoading.credentials")

    /// An empty storage without a file.
    public override init() {
        self.store = Mutex(CredentialStore())
        self.file = nil
        super.init()
    }

    /// - Parameter file: stores permanent credentials; created when there is something to write.
    package init(file: URL) {
        self.store = Mutex(Self.read(file))
        self.file = file
        super.init()
    }

    /// The storage of this program, in the file `.credentials.shared` of its data directory.
    open class var shared: URLCredentialStorage { self.sharedStorage }

    /// By user name; `nil` if there are none.
    open func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
        self.store.withLock { $0.credentials(for: space) }
    }

    open var allCredentials: [URLProtectionSpace: [String: URLCredential]] { self.store.withLock { $0.all } }

    /// Stores the credential, replacing that of the same user. The first credential of a space becomes its default. One
    /// with the persistence `none`, or without a user, is not stored.
    open func set(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.change { $0.set(credential, for: space) }
    }

    /// Removes the credential, unless it is synchronizable.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.remove(credential, for: space, options: nil)
    }

    /// - Parameter options: `NSURLCredentialStorageRemoveSynchronizableCredentials: true` also removes a synchronizable
    ///   credential.
    open func remove(_ credential: URLCredential, for space: URLProtectionSpace, options: [String: Any]? = [:]) {
        let option = options?[NSURLCredentialStorageRemoveSynchronizableCredentials]
        let allowed = option as? Bool ?? (option as? NSNumber)?.boolValue ?? false
        guard credential.persistence != .synchronizable || allowed else { return }
        self.change { $0.remove(credential, for: space) }
    }

    /// The credential tried first in this space.
    open func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
        self.store.withLock { $0.defaultCredential(for: space) }
    }

    /// Makes the credential the space's default, and stores it like `set(_:for:)`.
    open func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
        self.change { $0.setDefault(credential, for: space) }
    }

    /// - Parameter user: whose credential is required; `nil` for the default one.
    func credential(for space: URLProtectionSpace, user: String?) -> URLCredential? {
        let found = self.defaultCredential(for: space)
        guard let user, found?.user != user else { return found }
        return self.credentials(for: space)?[user]
    }

    // MARK: For a task

    // The loader calls these. Unless a subclass overrides them, they ignore the task and answer at once.

    /// - Parameter completionHandler: called once, on any thread.
    open func getCredentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
    ) {
        completionHandler(self.credentials(for: protectionSpace))
    }

    open func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
        self.set(credential, for: protectionSpace)
    }

    open func remove(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, options: [String: Any]? = [:],
        task: URLSessionTask
    ) {
        self.remove(credential, for: protectionSpace, options: options)
    }

    /// The credential that the task tries first; its challenge proposes it.
    /// - Parameter completionHandler: called once, on any thread; the task waits for it.
    open func getDefaultCredential(
        for space: URLProtectionSpace, task: URLSessionTask,
        completionHandler: @escaping @Sendable (URLCredential?) -> Void
    ) {
        completionHandler(self.defaultCredential(for: space))
    }

    open func setDefaultCredential(
        _ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) {
        self.setDefaultCredential(credential, for: protectionSpace)
    }

    /// Removes all credentials, also from the file.
    package func removeAll() { self.change { $0.removeAll() } }

    private func change(_ body: (inout CredentialStore) -> Bool) {
        let changed = self.store.withLock { store in
            guard body(&store) else { return false }
            if let file = self.file { Self.write(store, to: file) }
            return true
        }
        guard changed else { return }
        NotificationCenter.default.post(name: .NSURLCredentialStorageChanged, object: self)
    }

    private static func read(_ file: URL) -> CredentialStore {
        var store = CredentialStore()
        let records = (try? Data(contentsOf: file)).flatMap {
            try? PropertyListDecoder().decode([CredentialRecord].self, from: $0)
        }
        for record in records ?? [] {
            _ =
                record.isDefault
                ? store.setDefault(record.credential, for: record.space)
                : store.set(record.credential, for: record.space)
        }
        return store
    }

    private static func write(_ store: CredentialStore, to file: URL) {
        let records = store.all.flatMap { space, credentials in
            credentials.values.compactMap { credential in
                CredentialRecord(
                    credential, for: space, isDefault: store.defaultCredential(for: space) == credential)
            }
        }
        // No file is created for nothing, but removed credentials must not stay in an existing one.
        if records.isEmpty, !FileManager.default.fileExists(atPath: file.path) { return }
        guard let data = try? PropertyListEncoder().encode(records) else { return }
        _ = PrivateFile.write(data, to: file)
    }
}

extension Notification.Name {
    /// The credentials of a storage, the notification's object, have changed.
    public static let NSURLCredentialStorageChanged = Notification.Name("NSURLCredentialStorageChangedNotification")
}

extension URLCredentialStorage {
    /// Like `getCredentials(for:task:completionHandler:)`.
    public func credentials(
        for protectionSpace: URLProtectionSpace, task: URLSessionTask
    ) async -> [String: URLCredential]? {
        await withCheckedContinuation { continuation in
            self.getCredentials(for: protectionSpace, task: task) { continuation.resume(returning: $0) }
        }
    }

    /// Like `getDefaultCredential(for:task:completionHandler:)`.
    public func defaultCredential(for space: URLProtectionSpace, task: URLSessionTask) async -> URLCredential? {
        await withCheckedContinuation { continuation in
            self.getDefaultCredential(for: space, task: task) { continuation.resume(returning: $0) }
        }
    }
}

/// The form of a credential in the storage's file.
private struct CredentialRecord: Codable {
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

    /// - Returns: `nil` if the credential is not permanent.
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
            URLProtectionSpace.Attributes(
                host: self.host, port: self.port, protocol: self.protocol, proxyType: self.proxyType,
                realm: self.realm, method: self.method))
    }

    var credential: URLCredential {
        URLCredential(
            user: self.user, password: self.password,
            persistence: URLCredential.Persistence(rawValue: self.persistence) ?? .permanent)
    }
}

/// The credentials of a storage, by protection space and user.
private struct CredentialStore: Sendable {
    private var spaces: [URLProtectionSpace: [String: URLCredential]] = [:]
    private var defaults: [URLProtectionSpace: URLCredential] = [:]

    var all: [URLProtectionSpace: [String: URLCredential]] { self.spaces }

    func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? { self.spaces[space] }

    func defaultCredential(for space: URLProtectionSpace) -> URLCredential? { self.defaults[space] }

    /// - Returns: whether anything changed.
    mutating func set(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        guard let user = credential.user, credential.persistence != .none else { return false }
        let changed = self.spaces[space]?[user] != credential
        self.spaces[space, default: [:]][user] = credential
        if self.defaults[space] == nil || self.defaults[space]?.user == user { self.defaults[space] = credential }
        return changed
    }

    /// The default may have no user.
    mutating func setDefault(_ credential: URLCredential, for space: URLProtectionSpace) -> Bool {
        guard credential.persistence != .none else { return false }
        let changed = self.defaults[space] != credential
        let added = self.set(credential, for: space)
        self.defaults[space] = credential
        return changed || added
    }

    /// Also removes it as the default, which is not replaced.
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
