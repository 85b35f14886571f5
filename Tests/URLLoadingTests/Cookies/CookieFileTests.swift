import Foundation
import Testing
import URLLoading

@Suite("Cookies on disk")
struct CookieFileTests {
    private let folder: TemporaryFolder
    private var file: URL { self.folder.url.appendingPathComponent("deep/.cookies.shared") }

    init() throws { self.folder = try TemporaryFolder() }

    private func cookie(_ name: String, _ more: [HTTPCookiePropertyKey: Any] = [:]) throws -> HTTPCookie {
        let plain: [HTTPCookiePropertyKey: Any] = [
            .name: name, .value: "v", .path: "/", .domain: ".swift.org",
            .expires: Date(timeIntervalSince1970: 4_000_000_000),
        ]
        return try #require(HTTPCookie(properties: plain.merging(more) { $1 }))
    }

    @Test func persistentCookiesOutliveTheirStorage() throws {
        let storage = HTTPCookieStorage(file: self.file)
        let kept = try self.cookie(
            "kept", [.secure: "TRUE", .sameSitePolicy: "strict", .commentURL: "http://a/", .comment: "c", .port: "443"])
        storage.setCookie(kept)
        storage.setCookie(try self.cookie("session", [.discard: "TRUE"]))
        storage.setCookie(try self.cookie("gone"))
        storage.deleteCookie(try self.cookie("gone"))
        storage.flush()
        let later = HTTPCookieStorage(file: self.file)
        #expect(later.cookies == [kept] && later.cookies?.first?.sameSitePolicy == .sameSiteStrict)
        let url = try #require(URL(string: "https://www.swift.org"))
        #expect((later.cookies(for: url) as [HTTPCookie]?)?.count == 1)
    }

    @Test func firstCookiesAreWrittenAtOnce() throws {
        let storage = HTTPCookieStorage(file: self.file)
        #expect(!FileManager.default.fileExists(atPath: self.file.path))
        storage.setCookie(try self.cookie("session", [.discard: "TRUE"]))
        #expect(FileManager.default.fileExists(atPath: self.file.path))
        #expect(HTTPCookieStorage(file: self.file).cookies?.isEmpty == true)
    }

    @Test func cookieFileIsAccessibleToItsOwnerOnly() throws {
        let storage = HTTPCookieStorage(file: self.file)
        storage.setCookie(try self.cookie("a"))
        let attributes = try FileManager.default.attributesOfItem(atPath: self.file.path)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: self.folder.url.path + "/deep") == [".cookies.shared"])
    }

    @Test(arguments: [Data(), Data("garbage".utf8), Data("<plist><array><string>x</string></array></plist>".utf8)])
    func brokenFileHoldsNoCookies(_ content: Data) throws {
        let file = self.folder.url.appendingPathComponent("broken")
        try content.write(to: file)
        let storage = HTTPCookieStorage(file: file)
        #expect(storage.cookies?.isEmpty == true)
        storage.setCookie(try self.cookie("a"))
        #expect(HTTPCookieStorage(file: file).cookies?.count == 1)
    }

    @Test func cookiesStayInMemoryWhenNothingCanBeWritten() throws {
        let storage = HTTPCookieStorage(file: URL(fileURLWithPath: "/dev/null/none/cookies"))
        storage.setCookie(try self.cookie("a"))
        storage.flush()
        #expect(storage.cookies?.count == 1)
    }

    @Test func allCookiesAreStoredAfterManyChanges() async throws {
        let storage = HTTPCookieStorage(file: self.file)
        let cookies = try (0..<60).map { try self.cookie("c\($0)") }
        await withTaskGroup(of: Void.self) { group in
            for cookie in cookies {
                group.addTask {
                    storage.setCookie(cookie)
                    storage.flush()
                }
            }
        }
        #expect(HTTPCookieStorage(file: self.file).cookies?.count == 60)
    }

    @Test func timeOfStoringIsKept() throws {
        let storage = HTTPCookieStorage(file: self.file)
        storage.setCookie(try self.cookie("a"))
        storage.flush()
        let later = HTTPCookieStorage(file: self.file)
        later.removeCookies(since: Date(timeIntervalSinceNow: 60))
        #expect(later.cookies?.count == 1)
        later.removeCookies(since: Date(timeIntervalSinceNow: -60))
        #expect(later.cookies?.isEmpty == true)
    }
}
