import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayCore
import URLLoading
import WireText

/// Makes a plan of the body of a `createTransfer` request, and checks what the rules of its members do not say.
struct TransferRequestParser {
    /// Header fields that the loader or the connection sets.
    private static let reserved: Set<String> = [
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    ]
    private static let headerLimit = 100

    let request: TransferRequest
    let settings: TransferSettings
    let targets: TransferTargets
    /// Whether the gateway has a background session.
    let hasBackground: Bool

    func parse() throws(ControlProblem) -> TransferPlan {
        var request = URLRequest(url: try self.url())
        request.httpShouldHandleCookies = false
        try self.readHeaders(into: &request)
        if let idle = self.request.idleTimeoutMs { request.timeoutInterval = idle / 1000 }
        var plan = TransferPlan(
            request: request, bodyLimit: self.settings.maximumBody, memoryLimit: self.settings.maximumMemory)
        plan.body = try self.body()
        plan.request.httpMethod = try self.method(plan.body)
        try self.readDestination(into: &plan)
        try self.readOptions(into: &plan)
        plan.runsInBackground = try self.runsInBackground(plan)
        return plan
    }

    private func runsInBackground(_ plan: TransferPlan) throws(ControlProblem) -> Bool {
        let obstacle = plan.backgroundObstacle
        if self.hasBackground, obstacle == nil { return self.request.background ?? true }
        guard self.request.background == true else { return false }
        throw .invalid(
            "/background",
            self.hasBackground
                ? "This transfer cannot go on without the gateway: \(obstacle ?? "")."
                : "No transfer goes on without the gateway: set control.transfers.background, and restart it.")
    }

    // MARK: The request

    private func url() throws(ControlProblem) -> URL {
        guard self.request.url.utf8.count <= 8192,
            let url = URL(string: self.request.url, encodingInvalidCharacters: false),
            let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme), url.host?.isEmpty == false,
            url.port.map({ (1...65_535).contains($0) }) ?? true
        else {
            throw .invalid("/url", "url must be http://HOST… or https://HOST….")
        }
        guard url.user == nil, url.password == nil else {
            throw .invalid("/url", "url must not contain credentials; use a credential of the configuration.")
        }
        if let refusal = self.targets.refusal(of: url) { throw refusal.at(pointer: "/url") }
        return url
    }

    private func readHeaders(into request: inout URLRequest) throws(ControlProblem) {
        let headers = self.request.headers ?? [:]
        guard headers.count <= Self.headerLimit else {
            throw .invalid("/headers", "headers must have at most \(Self.headerLimit) members.")
        }
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            let pointer = JSONPointer.member(name, of: "/headers")
            guard name.isToken else {
                throw .invalid(pointer, "The name of a header must be a token (RFC 9110).")
            }
            guard !Self.reserved.contains(name.lowercased()) else {
                throw .invalid(pointer, "\(name) is set by the gateway; leave it out.")
            }
            guard value.utf8.allSatisfy({ $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }) else {
                throw .invalid(pointer, "The value of a header must not contain control characters.")
            }
            request.setValue(value, forHTTPHeaderField: name)
        }
    }

    private func method(_ body: TransferPlan.Body) throws(ControlProblem) -> String {
        var hasBody = true
        if case .none = body { hasBody = false }
        let method = self.request.method ?? (hasBody ? "PUT" : "GET")
        guard method.isToken, method.utf8.count <= 32, !["CONNECT", "TRACE"].contains(method.uppercased()) else {
            throw .invalid("/method", "method must be a token other than CONNECT and TRACE.")
        }
        guard !hasBody || !["GET", "HEAD"].contains(method) else {
            throw .invalid("/method", "\(method) has no body; leave out the body or the method.")
        }
        return method
    }

    private func body() throws(ControlProblem) -> TransferPlan.Body {
        let given = [
            ("/text", self.request.text != nil), ("/body", self.request.body != nil),
            ("/data", self.request.data != nil), ("/file", self.request.file != nil),
            ("/streamed", self.request.streamed == true),
        ].filter(\.1)
        guard given.count < 2 else {
            throw .invalid(given[1].0, "Give at most one of text, body, data, file and streamed.")
        }
        if let text = self.request.text { return .data(try self.bounded(Data(text.utf8), "/text")) }
        if let text = self.request.body { return .data(try self.bounded(Data(text.utf8), "/body")) }
        if let text = self.request.data {
            guard let bytes = Base64.decoded(text.utf8) else {
                throw .invalid("/data", "data must be base64 (RFC 4648 §4).")
            }
            return .data(try self.bounded(Data(bytes), "/data"))
        }
        if let path = self.request.file {
            let file = try TransferFile(path, below: self.settings.directories, at: "/file")
            do throws(FileError) {
                return .file(try file.openForReading(), path: path)
            } catch {
                throw ControlProblem(error, of: path, at: "/file")
            }
        }
        return self.request.streamed == true ? .streamed : .none
    }

    private func bounded(_ data: Data, _ pointer: String) throws(ControlProblem) -> Data {
        guard data.count <= self.settings.maximumBody else {
            throw .invalid(
                pointer,
                "The body is longer than \(self.settings.maximumBody) bytes (control.transfers.max-body); send a file, or stream it."
            )
        }
        return data
    }

    // MARK: Destination and options

    private func readDestination(into plan: inout TransferPlan) throws(ControlProblem) {
        plan.overwrites = self.request.overwrite ?? false
        guard let path = self.request.destination else {
            guard self.request.overwrite == nil else {
                throw .invalid("/overwrite", "overwrite requires a destination.")
            }
            return
        }
        switch plan.body {
        case .none, .data: break
        case .file, .copied, .streamed:
            throw .invalid(
                "/destination", "The response to a file or a stream is kept in memory; leave out destination.")
        }
        let destination = try TransferFile(path, below: self.settings.directories, at: "/destination")
        do throws(FileError) {
            try destination.checkWritable(overwrites: plan.overwrites)
        } catch {
            throw ControlProblem(error, of: path, at: "/destination")
        }
        plan.destination = destination
    }

    private func readOptions(into plan: inout TransferPlan) throws(ControlProblem) {
        plan.credential = try self.credential(plan.request)
        plan.followsRedirects = self.request.followRedirects ?? true
        plan.isInsecure = self.request.insecure ?? false
        if let pem = self.request.authorities {
            // Reports invalid certificates now rather than by a failed handshake.
            _ = try TLSRequestParser(
                request: TLSRequest { $0.authorities = pem }, speaksWebSocket: false, pointer: "/authorities"
            )
            .context()
            plan.authorities = Array(pem.utf8)
        }
        plan.timeout = OpenRequestParser.duration(self.request.timeoutMs) ?? plan.timeout
        plan.startsImmediately = self.request.start ?? true
        if plan.isStreamed, self.request.start != nil {
            throw .invalid("/start", "A streamed transfer starts with its body; leave out start.")
        }
        if let limit = self.request.maximumBodyBytes {
            guard (0...self.settings.maximumBody).contains(limit) else {
                throw .invalid(
                    "/maximumBodyBytes", "maximumBodyBytes must be from 0 to \(self.settings.maximumBody).")
            }
            plan.bodyLimit = limit
        }
        plan.description = self.request.description
        plan.priority = self.request.priority.map { Float($0) } ?? plan.priority
        plan.labels = try OpenRequestParser.labels(self.request.labels)
    }

    private func credential(_ request: URLRequest) throws(ControlProblem) -> TransferCredential? {
        guard let name = self.request.credential else { return nil }
        guard let credential = self.settings.credential(named: name) else {
            throw .invalid("/credential", "There is no credential \(name.prefix(64)) in control.transfers.credentials.")
        }
        guard let host = request.url?.host, credential.isAllowed(for: host) else {
            throw ControlProblem(
                403, "credential-not-allowed",
                "The credential \(name) is not for this host; see its hosts in the configuration."
            ).at(pointer: "/credential")
        }
        return credential
    }
}

/// The validated settings of a transfer.
struct TransferPlan: Sendable {
    enum Body: Sendable {
        case none
        case data(Data)
        case file(OpenFile, path: String)
        /// Of an upload that an earlier gateway created: the daemon has a copy.
        case copied(path: String)
        /// Sent by a `sendTransferBody` request.
        case streamed
    }

    /// Without credentials.
    var request: URLRequest
    var body = Body.none
    var destination: TransferFile?
    var overwrites = false
    var credential: TransferCredential?
    var followsRedirects = true
    var isInsecure = false
    /// Trusted instead of the system's roots, in PEM.
    var authorities: [UInt8]?
    var timeout = Duration.seconds(7 * 86_400)
    var bodyLimit: Int
    var memoryLimit: Int
    var startsImmediately = true
    var description: String?
    var priority: Float = 0.5
    var labels: [String: String] = [:]
    /// Whether the daemon carries it out.
    var runsInBackground = false
    /// A download, although its destination is not allowed any more.
    var isRefusedDownload = false

    /// Why the daemon cannot carry it out; `nil` if it can.
    var backgroundObstacle: String? {
        switch self.body {
        case .none: if self.destination == nil { return "it needs a destination" }
        case .data: return "a body must come from a file"
        case .streamed: return "a body must come from a file, not from a stream"
        case .file, .copied: break
        }
        if self.credential != nil { return "leave out credential" }
        if self.isInsecure { return "leave out insecure" }
        if self.authorities != nil { return "leave out authorities" }
        return self.followsRedirects ? nil : "redirects are always followed; leave out followRedirects"
    }

    /// The type of the URLSession task.
    enum Kind: String, CaseIterable {
        case data, upload, download
    }

    var kind: Kind {
        if self.destination != nil || self.isRefusedDownload { return .download }
        if case .none = self.body { return .data }
        return .upload
    }

    var isStreamed: Bool {
        if case .streamed = self.body { true } else { false }
    }

    var bodyPath: String? {
        switch self.body {
        case .file(_, let path), .copied(let path): path
        case .none, .data, .streamed: nil
        }
    }

    /// Whether the body cannot be sent again.
    var isBodyGone: Bool {
        switch self.body {
        case .streamed, .copied: true
        case .none, .data, .file: false
        }
    }

    var bodyBytesInMemory: Int {
        if case .data(let data) = self.body { data.count } else { 0 }
    }

    /// Whether its connections may be shared with other transfers.
    var canShareSession: Bool { self.credential == nil && !self.isInsecure && self.authorities == nil }
}
