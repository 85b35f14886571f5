import Foundation
import Testing
import URLLoading

@Suite("Storages of credentials")
struct URLCredentialStorageTests {
    private let storage = URLCredentialStorage()
    private let space = Self.space("example.com")

    private static func space(_ host: String) -> URLProtectionSpace {
        URLProtectionSpace(
            host: host, port: 0, protocol: NSURLProtectionSpaceHTTP, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    }

    private static func credential(
        _ user: String, password: String = "p", _ persistence: URLCredential.Persistence = .forSession
    ) -> URLCredential {
        URLCredential(user: user, password: password, persistence: persistence)
    }

    @Test func credentialsAreKeptBySpaceAndUser() {
        #expect(self.storage.allCredentials.isEmpty && self.storage.credentials(for: self.space) == nil)
        self.storage.set(Self.credential("a"), for: self.space)
        self.storage.set(Self.credential("b"), for: Self.space("example.com"))
        #expect(self.storage.credentials(for: self.space) == ["a": Self.credential("a"), "b": Self.credential("b")])
        #expect(self.storage.credentials(for: Self.space("example2.com")) == nil)
        #expect(self.storage.allCredentials.count == 1)
        self.storage.set(Self.credential("a", password: "q"), for: self.space)
        #expect(self.storage.credentials(for: self.space)?["a"]?.password == "q")
    }

    @Test func firstCredentialIsTheDefaultUntilAnotherIsSet() {
        self.storage.set(Self.credential("a"), for: self.space)
        self.storage.set(Self.credential("b"), for: self.space)
        #expect(self.storage.defaultCredential(for: self.space) == Self.credential("a"))
        self.storage.setDefaultCredential(Self.credential("c"), for: self.space)
        #expect(self.storage.defaultCredential(for: self.space) == Self.credential("c"))
        #expect(self.storage.credentials(for: self.space)?.count == 3)
        #expect(self.storage.defaultCredential(for: Self.space("example2.com")) == nil)
        self.storage.set(Self.credential("c", password: "new"), for: self.space)
        #expect(self.storage.defaultCredential(for: self.space)?.password == "new")
    }

    @Test func removedCredentialIsNoDefault() {
        self.storage.setDefaultCredential(Self.credential("a"), for: self.space)
        self.storage.set(Self.credential("b"), for: self.space)
        self.storage.remove(Self.credential("a", password: "another"), for: self.space)
        #expect(self.storage.credentials(for: self.space)?.count == 2)
        self.storage.remove(Self.credential("a"), for: self.space)
        #expect(self.storage.defaultCredential(for: self.space) == nil)
        #expect(self.storage.credentials(for: self.space) == ["b": Self.credential("b")])
        self.storage.remove(Self.credential("b"), for: self.space)
        #expect(self.storage.allCredentials.isEmpty)
    }

    @Test func credentialWithoutPersistenceIsNotKept() {
        self.storage.set(Self.credential("a", .none), for: self.space)
        self.storage.setDefaultCredential(Self.credential("a", .none), for: self.space)
        #expect(self.storage.allCredentials.isEmpty && self.storage.defaultCredential(for: self.space) == nil)
    }

    @Test(arguments: [nil, [:], ["x": true], ["NSURLCredentialStorageRemoveSynchronizableCredentials": false]])
    func synchronizableCredentialIsRemovedOnlyWithItsOption(_ options: [String: Bool]?) {
        let credential = Self.credential("a", .synchronizable)
        self.storage.set(credential, for: self.space)
        self.storage.remove(credential, for: self.space)
        self.storage.remove(credential, for: self.space, options: options)
        #expect(self.storage.allCredentials.count == 1)
        let key = NSURLCredentialStorageRemoveSynchronizableCredentials
        self.storage.remove(credential, for: self.space, options: [key: "of course"])
        #expect(self.storage.allCredentials.count == 1)
        self.storage.remove(credential, for: self.space, options: [key: NSNumber(value: true)])
        #expect(self.storage.allCredentials.isEmpty)
    }

    @Test func notificationIsPostedForChangesOnly() {
        let changes = NotificationCounter(.NSURLCredentialStorageChanged, object: self.storage)
        self.storage.set(Self.credential("a"), for: self.space)
        #expect(changes.count == 1)
        self.storage.set(Self.credential("a"), for: self.space)
        self.storage.setDefaultCredential(Self.credential("a"), for: self.space)
        self.storage.remove(Self.credential("b"), for: self.space)
        self.storage.remove(Self.credential("a"), for: Self.space("example2.com"))
        self.storage.set(Self.credential("n", .none), for: self.space)
        #expect(changes.count == 1)
        self.storage.set(Self.credential("a"), for: Self.space("example2.com"))
        #expect(changes.count == 2)
        self.storage.setDefaultCredential(Self.credential("b"), for: self.space)
        #expect(changes.count == 3)
        self.storage.setDefaultCredential(Self.credential("a"), for: self.space)
        #expect(changes.count == 4)
        self.storage.remove(Self.credential("a"), for: self.space)
        #expect(changes.count == 5)
    }

    @Test func permanentCredentialsAreInAFileOfItsOwnerOnly() throws {
        let folder = try TemporaryFolder()
        let file = folder.url.appendingPathComponent("credentials")
        let storage = URLCredentialStorage(file: file)
        storage.set(Self.credential("session"), for: self.space)
        #expect(try folder.names.isEmpty)
        storage.set(Self.credential("first", .permanent), for: self.space)
        storage.setDefaultCredential(Self.credential("default", .permanent), for: self.space)
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let later = URLCredentialStorage(file: file)
        #expect(Set(later.credentials(for: self.space)?.keys.sorted() ?? []) == ["first", "default"])
        #expect(later.defaultCredential(for: self.space) == Self.credential("default", .permanent))
        later.removeAll()
        #expect(URLCredentialStorage(file: file).allCredentials.isEmpty)
        try Data("garbage".utf8).write(to: file)
        #expect(URLCredentialStorage(file: file).allCredentials.isEmpty)
    }

    @Test func storageIsSafeFromManyThreads() async {
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<100 {
                group.addTask {
                    self.storage.set(Self.credential("u\(index)"), for: self.space)
                    _ = self.storage.defaultCredential(for: self.space)
                }
            }
        }
        #expect(self.storage.credentials(for: self.space)?.count == 100)
    }

    @Test func sharedStorageIsOneForTheProgram() {
        #expect(URLCredentialStorage.shared === URLCredentialStorage.shared)
    }
}
