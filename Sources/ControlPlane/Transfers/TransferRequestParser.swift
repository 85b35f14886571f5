import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayCore
import StreamTransport
import URLLoading

/// Makes an order of what a client asks for, or says what is wrong with it.
struct TransferRequestParser {
    /// What the loader and the connection set by themselves.
    private static let reserved: Set<String> = [
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-authorization", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    ]
    private static let headerLimit = 100
    private static let longest = 366 * 86_400_000.0

    let wanted: TransferRequest
    let settings: TransferSettings
    let targets: TransferTargets

    func parse() throws(ControlProblem) -> TransferPlan {
        var request = URLRequest(url: try self.url())
        request.httpShouldHandleCookies = false
        try self.readHeaders(into: &request)
        if let idle = try OpenRequestParser.duration(self.wanted.idleTimeoutMs, "/idleTimeoutMs", in: 1...Self.longest)
        {
            request.timeoutInterval = Double(idle.wholeMicroseconds) / 1_000_000
        }
        var order = TransferPlan(
            request: request, bodyLimit: self.settings.maximumBody, memoryLimit: self.settings.maximumMemory)
        order.body = try self.body()
        order.request.httpMethod = try self.method(order.body)
        try self.readFiles(into: &order)
        try self.readTerms(into: &order)
        return order
    }

    // MARK: The request

    private func url() throws(ControlProblem) -> URL {
        guard self.wanted.url.utf8.count <= 8192,
            let url = URL(string: self.wanted.url, encodingInvalidCharacters: false),
            let scheme = url.scheme?.lowercased(), ["http", "https"].contains(scheme), url.host?.isEmpty == false,
            url.port.map({ (1...65_535).contains($0) }) ?? true
        else {
            throw .invalid("/url", "url must be http://HOST… or https://HOST….")
        }
        guard url.user == nil, url.password == nil else {
            throw .invalid("/url", "url must not contain credentials; name a credential of the configuration.")
        }
        if let refusal = self.targets.refusal(of: url) { throw refusal.at(pointer: "/url") }
        return url
    }

    private func readHeaders(into request: inout URLRequest) throws(ControlProblem) {
        let headers = self.wanted.headers ?? [:]
        guard headers.count <= Self.headerLimit else {
            throw .invalid("/headers", "headers must have at most \(Self.headerLimit) members.")
        }
        for (name, value) in headers.sorted(by: { $0.key < $1.key }) {
            let pointer = "/headers/" + name.prefix(64).replacing("~", with: "~0").replacing("/", with: "~1")
            guard Self.isToken(name) else {
                throw .invalid(pointer, "The name of a header must be a token (RFC 9110).")
            }
            guard !Self.reserved.contains(name.lowercased()) else {
                throw .invalid(pointer, "\(name) is set by the gateway itself; leave it out.")
            }
            guard value.utf8.allSatisfy({ $0 == 0x09 || $0 >= 0x20 && $0 != 0x7F }) else {
                throw .invalid(pointer, "The value of a header must have no control characters.")
            }
            request.setValue(value, forHTTPHeaderField: name)
        }
    }

    private static func isToken(_ text: String) -> Bool {
        !text.isEmpty
            && text.utf8.allSatisfy { byte in
                switch byte {
                case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
                default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
                }
            }
    }

    private func method(_ body: TransferPlan.Body) throws(ControlProblem) -> String {
        var hasBody = true
        if case .none = body { hasBody = false }
        let method = self.wanted.method ?? (hasBody ? "PUT" : "GET")
        guard Self.isToken(method), method.utf8.count <= 32, !["CONNECT", "TRACE"].contains(method.uppercased()) else {
            throw .invalid("/method", "method must be a token like GET; CONNECT and TRACE are not made.")
        }
        guard !hasBody || !["GET", "HEAD"].contains(method) else {
            throw .invalid("/method", "\(method) has no body; leave out the body, or the method.")
        }
        return method
    }

    private func body() throws(ControlProblem) -> TransferPlan.Body {
        let given = [
            ("/text", self.wanted.text != nil), ("/body", self.wanted.body != nil),
            ("/data", self.wanted.data != nil), ("/file", self.wanted.file != nil),
            ("/streamed", self.wanted.streamed == true),
        ].filter(\.1)
        guard given.count < 2 else {
            throw .invalid(given[1].0, "Give at most one of text, body, data, file and streamed.")
        }
        if let text = self.wanted.text { return .data(try self.bounded(Data(text.utf8), "/text")) }
        if let text = self.wanted.body { return .data(try self.bounded(Data(text.utf8), "/body")) }
        if let text = self.wanted.data {
            guard let data = Data(base64Encoded: text) else {
                throw .invalid("/data", "data must be base64 (RFC 4648 §4).")
            }
            return .data(try self.bounded(data, "/data"))
        }
        if let path = self.wanted.file {
            let place = try TransferFile(path, below: self.settings.directories, at: "/file")
            do throws(FileError) {
                return .file(try place.openForReading(), path: path)
            } catch {
                throw error.problem(path, at: "/file")
            }
        }
        return self.wanted.streamed == true ? .streamed : .none
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

    // MARK: What it may touch and take

    private func readFiles(into order: inout TransferPlan) throws(ControlProblem) {
        order.overwrites = self.wanted.overwrite ?? false
        guard let path = self.wanted.destination else {
            guard self.wanted.overwrite == nil else {
                throw .invalid("/overwrite", "overwrite is for a transfer with a destination; leave it out.")
            }
            return
        }
        switch order.body {
        case .none, .data: break
        case .file, .streamed:
            throw .invalid(
                "/destination", "What is sent from a file or a stream has its answer in memory; leave it out.")
        }
        let place = try TransferFile(path, below: self.settings.directories, at: "/destination")
        do throws(FileError) {
            try place.checkWritable(overwrites: order.overwrites)
        } catch {
            throw error.problem(path, at: "/destination")
        }
        order.destination = place
    }

    private func readTerms(into order: inout TransferPlan) throws(ControlProblem) {
        order.credential = try self.credential(order.request)
        order.followsRedirects = self.wanted.followRedirects ?? true
        order.isInsecure = self.wanted.insecure ?? false
        if let pem = self.wanted.authorities {
            // Told now rather than by a handshake that fails.
            _ = try TLSRequestParser(TLSRequest(authorities: pem), speaksWebSocket: false, pointer: "/authorities")
                .context()
            order.authorities = Array(pem.utf8)
        }
        order.timeout =
            try OpenRequestParser.duration(self.wanted.timeoutMs, "/timeoutMs", in: 1...Self.longest) ?? order.timeout
        order.startsImmediately = self.wanted.start ?? true
        if order.isStreamed, self.wanted.start != nil {
            throw .invalid("/start", "A streamed transfer begins with its body; leave it out.")
        }
        if let limit = self.wanted.maximumBodyBytes {
            guard (0...self.settings.maximumBody).contains(limit) else {
                throw .invalid(
                    "/maximumBodyBytes", "maximumBodyBytes must be from 0 to \(self.settings.maximumBody).")
            }
            order.bodyLimit = limit
        }
        order.description = try OpenRequestParser.description(self.wanted.description)
        order.priority = try OpenRequestParser.priority(self.wanted.priority) ?? order.priority
        order.labels = try OpenRequestParser.labels(self.wanted.labels)
    }

    private func credential(_ request: URLRequest) throws(ControlProblem) -> TransferCredential? {
        guard let name = self.wanted.credential else { return nil }
        guard let credential = self.settings.credential(named: name) else {
            throw .invalid("/credential", "There is no credential \(name.prefix(64)) in control.transfers.credentials.")
        }
        guard let host = request.url?.host, credential.isFor(host) else {
            throw ControlProblem(
                403, "credential-not-allowed",
                "The credential \(name) is not for this host; its hosts say for whom it is."
            ).at(pointer: "/credential")
        }
        return credential
    }
}

/// A transfer that was asked for, and passed every check.
struct TransferPlan: Sendable {
    enum Body: Sendable {
        case none
        case data(Data)
        case file(OpenFile, path: String)
        /// Another request brings it.
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
    /// Trusted in place of the system's roots: PEM.
    var authorities: [UInt8]?
    var timeout = Duration.seconds(7 * 86_400)
    var bodyLimit: Int
    var memoryLimit: Int
    var startsImmediately = true
    var description: String?
    var priority: Float = 0.5
    var labels: [String: String] = [:]

    /// As `URLSession` tells its tasks apart.
    enum Kind: String, CaseIterable {
        case data, upload, download
    }

    var kind: Kind {
        if self.destination != nil { return .download }
        if case .none = self.body { return .data }
        return .upload
    }

    var isStreamed: Bool {
        if case .streamed = self.body { true } else { false }
    }

    /// Bytes of the body that are held in memory.
    var bodyBytesInMemory: Int {
        if case .data(let data) = self.body { data.count } else { 0 }
    }

    /// Whether nothing about its connections keeps others from using them.
    var canShareSession: Bool { self.credential == nil && !self.isInsecure && self.authorities == nil }
}

/// What was received, on its way to its place: complete or not there at all for whoever looks at the directory.
final class TransferOutput: Sendable {
    private static let pieceSize = 1 << 20
    /// For its owner to write, for its group to read.
    private static let mode: mode_t = 0o640

    private let folder: OpenFile
    private let name: String
    private let draftName: String

    init(_ folder: OpenFile, name: String) {
        self.folder = folder
        self.name = name
        self.draftName = ".sluice-\(String(Machine.randomWords(1).first ?? 0, radix: 36)).part"
    }

    /// Takes the file at `path` without copying it, which works within one file system.
    /// - Returns: whether that worked.
    func link(_ path: String) -> Bool {
        guard linkat(AT_FDCWD, path, self.folder.descriptor, self.draftName, 0) == 0 else { return false }
        _ = fchmodat(self.folder.descriptor, self.draftName, Self.mode, 0)
        return true
    }

    /// Copies; takes as long as the disk does.
    func copy(_ source: OpenFile) throws(FileError) {
        let target = try OpenFile(
            openat(
                self.folder.descriptor, self.draftName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, Self.mode)
        )
        var offset: Int64 = 0
        while true {
            let bytes = try source.read(Self.pieceSize, at: offset)
            guard !bytes.isEmpty else { return }
            try target.write(bytes)
            offset += Int64(bytes.count)
        }
    }

    /// Gives the draft its name.
    func publish(overwrites: Bool) throws(FileError) {
        let folder = self.folder.descriptor
        let isDone =
            overwrites
            ? renameat(folder, self.draftName, folder, self.name) == 0
            : linkat(folder, self.draftName, folder, self.name, 0) == 0
        guard isDone else { throw FileError(errno) }
        if !overwrites { self.discard() }
    }

    /// Takes the draft away.
    func discard() {
        unlinkat(self.folder.descriptor, self.draftName, 0)
    }
}

/// Where transfers may lead: to where connections opened by command may.
struct TransferTargets: Sendable {
    /// Why a URL may not be asked for, before its name is looked up; also of each redirect.
    var refusal: @Sendable (_ scheme: String, _ host: String, _ port: UInt16) -> ControlProblem? = { _, _, _ in nil }
    /// Whether an address may be connected to on behalf of a host.
    var admits: @Sendable (SocketAddress, _ host: String) -> Bool

    /// - Parameter rules: asked each time, as they can change.
    init(_ rules: @escaping @Sendable () -> TargetRules) {
        self.admits = { address, host in
            // A host in digits is no name that a rule could be about.
            let isLiteral = SocketAddress(literal: host, port: 0) != nil
            return rules().allows(address, askedFor: isLiteral ? nil : host)
        }
    }
}
