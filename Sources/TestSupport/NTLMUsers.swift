import Foundation

/// The users whom the server side of NTLM knows within a test process.
package enum NTLMUsers {
    package static let user = "DOMAIN\\ada"
    package static let other = "DOMAIN\\eve"
    /// Of both.
    package static let password = "secret"

    /// Makes them known, once: GSS-API finds them by an environment variable.
    package static let areKnown: Bool = {
        let file = FileManager.default.temporaryDirectory.appending(path: "sluice-tests-\(getpid()).users")
        let users = ["ada", "eve"].map { "DOMAIN:\($0):\(Self.password)\n" }.joined()
        guard (try? users.write(to: file, atomically: true, encoding: .utf8)) != nil else { return false }
        return setenv("NTLM_USER_FILE", file.path, 1) == 0
    }()
}
