import Foundation
import Testing
import URLLoading

@Suite("Credentials")
struct URLCredentialTests {
    private let credential = URLCredential(user: "user", password: "secret", persistence: .forSession)

    @Test func credentialHasItsInitialValues() {
        #expect(self.credential.user == "user" && self.credential.password == "secret" && self.credential.hasPassword)
        #expect(self.credential.persistence == .forSession && self.credential.identity == nil)
        #expect(self.credential.certificates.isEmpty && self.credential.trust == nil)
        #expect(URLCredential(user: "u", password: "", persistence: .none).hasPassword)
    }

    @Test func descriptionOmitsThePassword() {
        #expect(!self.credential.description.contains("secret") && !"\(self.credential)".contains("secret"))
    }

    @Test func credentialIsDecodedFromAnArchive() throws {
        let data = try NSKeyedArchiver.archivedData(withRootObject: self.credential, requiringSecureCoding: true)
        let back = try NSKeyedUnarchiver.unarchivedObject(ofClass: URLCredential.self, from: data)
        #expect(back == self.credential && back?.hash == self.credential.hash)
        #expect(self.credential.isEqual(self.credential.copy()))
    }

    @Test func credentialsDifferInAnyProperty() {
        let variants = [
            self.credential, URLCredential(user: "other", password: "secret", persistence: .forSession),
            URLCredential(user: "user", password: "other", persistence: .forSession),
            URLCredential(user: "user", password: "secret", persistence: .permanent),
        ]
        #expect(Set(variants).count == 4 && !self.credential.isEqual(NSObject()))
    }

    @Test func persistenceHasFoundationsRawValues() {
        let all: [URLCredential.Persistence] = [.none, .forSession, .permanent, .synchronizable]
        #expect(all.map(\.rawValue) == [0, 1, 2, 3])
    }
}
