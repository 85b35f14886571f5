import HTTPSemantics

/// Each line of the input is a `Set-Cookie` field from one of two hosts; stored cookies are sent only to permitted hosts
/// and paths, and keep the limits.
enum CookiesCheck {
    private static let limits = CookieLimits(perDomain: 5, total: 8)
    private static let now = HTTPDate(seconds: 1_700_000_000)

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        var jar = CookieJar(limits: self.limits)
        let text = String(decoding: bytes, as: UTF8.self)
        _ = SetCookieField.parseJoined(text)
        for (index, line) in text.split(separator: "\n").prefix(64).enumerated() {
            guard let field = SetCookieField(String(line)) else { continue }
            let isSecure = index.isMultiple(of: 3)
            let host = index.isMultiple(of: 2) ? "www.example.com" : "other.test"
            let request = CookieRequest(host: host, path: "/a/b", isSecure: isSecure)
            let set = SetCookie(field, dialect: index.isMultiple(of: 5) ? .foundation : .standard, now: self.now)
            _ = jar.store(set, from: request, now: self.now.advanced(by: Int64(index)))
        }
        try self.check(jar)
    }

    private static func check(_ jar: CookieJar) throws(InvariantViolation) {
        try InvariantViolation.expect(jar.cookies.count <= self.limits.total, "\(jar.cookies.count) cookies")
        try InvariantViolation.expect(jar.count == jar.cookies.count, "counted \(jar.count)")
        for cookie in jar.cookies {
            let isOurs = ["www.example.com", "example.com", "other.test"].contains(cookie.domain)
            try InvariantViolation.expect(isOurs, "a cookie for \(cookie.domain)")
            try InvariantViolation.expect(cookie.path.hasPrefix("/"), "a cookie for the path \(cookie.path)")
            let controls = (cookie.name + cookie.value).utf8.contains { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }
            try InvariantViolation.expect(!controls, "a control character in \(cookie.name)")
        }
        var jar = jar
        let elsewhere = CookieRequest(host: "elsewhere.test", path: "/a/b", isSecure: true)
        try InvariantViolation.expect(jar.retrieve(for: elsewhere, now: self.now).isEmpty, "a cookie goes elsewhere")
        let insecure = CookieRequest(host: "www.example.com", path: "/a/b", isSecure: false)
        let sent = jar.retrieve(for: insecure, now: self.now)
        try InvariantViolation.expect(sent.allSatisfy { !$0.isSecure }, "a secure cookie goes in the open")
        _ = CookieField.rendered(sent)
    }
}
