import NIOHTTP1

/// What RFC 9112 says of a request's head: whether the connection stays behind it, how its body is framed, and whose
/// authority counts.
package enum RequestHeadRules {
    /// What the answer must heed.
    package struct Exchange: Equatable, Sendable {
        /// The client speaks HTTP/1.0: it knows no chunks.
        package let isOld: Bool
        /// The connection is closed behind the answer.
        package var isLast: Bool

        package init(isOld: Bool, isLast: Bool) {
            self.isOld = isOld
            self.isLast = isLast
        }
    }

    /// Checks `head`, and puts it into the form that the server reads: a target in origin form, the authority that counts
    /// in `Host`, and `Connection: close` where the connection ends behind the answer.
    /// - Parameter ownAuthority: host and port for requests of HTTP/1.0 that name none (RFC 9112 §3.3).
    /// - Throws: `ControlProblem` 501 for a transfer coding other than `chunked`, or any of HTTP/1.0 (§6.1), and 421 for a
    ///   target of another scheme.
    package static func check(
        _ head: inout HTTPRequestHead, ownAuthority: String?
    ) throws(ControlProblem) -> Exchange {
        let isOld = head.version == .http1_0
        try Self.checkCodings(head.headers[canonicalForm: "Transfer-Encoding"].map { $0.lowercased() }, isOld: isOld)
        try Self.readTarget(&head, isOld: isOld)
        if isOld, !head.headers.contains(name: "Host"), let ownAuthority {
            head.headers.add(name: "Host", value: ownAuthority)
        }
        // RFC 9110 §7.8: HTTP/1.0 has no such offers.
        if isOld { head.headers.remove(name: "Upgrade") }
        let options = head.headers[canonicalForm: "Connection"].map { $0.lowercased() }
        // RFC 9112 §9.3.
        let isLast = options.contains("close") || (isOld && !options.contains("keep-alive"))
        if isLast { head.headers.replaceOrAdd(name: "Connection", value: "close") }
        return Exchange(isOld: isOld, isLast: isLast)
    }

    private static func checkCodings(_ codings: [String], isOld: Bool) throws(ControlProblem) {
        guard !codings.isEmpty else { return }
        guard !isOld else {
            throw ControlProblem(
                501, "unsupported-transfer-coding",
                "HTTP/1.0 has no Transfer-Encoding (RFC 9112 §6.1); send Content-Length, or HTTP/1.1.")
        }
        guard codings == ["chunked"] else {
            throw ControlProblem(
                501, "unsupported-transfer-coding", "The only transfer coding that is understood is chunked.")
        }
    }

    /// Of a target in absolute form, the authority counts in place of `Host` (RFC 9112 §3.2.2). How many of those there
    /// are is checked later: a request of HTTP/1.1 needs one all the same (§3.2).
    private static func readTarget(_ head: inout HTTPRequestHead, isOld: Bool) throws(ControlProblem) {
        guard head.method != .CONNECT, head.uri.first != "/", let mark = head.uri.firstRange(of: "://") else { return }
        guard ["http", "https"].contains(head.uri[..<mark.lowerBound].lowercased()) else {
            throw ControlProblem(421, "unknown-scheme", "The target is to be of http or https.")
        }
        let rest = head.uri[mark.upperBound...]
        let authority = rest.prefix { !"/?#".contains($0) }
        let resource = rest[authority.endIndex...].prefix { $0 != "#" }
        let hosts = head.headers["Host"].count
        if hosts == 1 || (isOld && hosts == 0) {
            head.headers.replaceOrAdd(name: "Host", value: String(authority))
        }
        head.uri = resource.first == "/" ? String(resource) : "/" + resource
    }
}
