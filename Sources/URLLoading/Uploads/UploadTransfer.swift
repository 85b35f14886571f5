import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import StreamTransport
import WireText

/// The resumable upload of one HTTP load: its state, and what the requests that continue it are made of. Confined to the
/// session's executor.
final class UploadTransfer {
    var machine: ResumableUpload
    /// The request that creates the upload.
    let creation: URLRequest
    /// The whole body.
    let body: TaskBody
    /// Where the upload is continued; `nil` before the server has named it.
    var resource: URL?
    /// Of the file, when its first byte was sent.
    private(set) var identity: FileIdentity?
    /// Why the latest request was interrupted.
    var interruption: URLError?
    /// The pause ended while the task was suspended.
    var isDue = false
    private let timer = LoopTimer()

    /// An upload that is yet to be created.
    init(_ version: UploadVersion, _ request: URLRequest, _ body: TaskBody) {
        self.machine = ResumableUpload(version, length: body.knownLength)
        self.creation = request
        self.body = body
    }

    init(resuming data: UploadResumeData) {
        self.machine = ResumableUpload(
            resuming: data.version, length: data.length, acknowledged: data.acknowledged,
            limits: UploadLimits(partSize: data.partSize, expiry: data.expiry))
        self.creation = data.currentRequest
        self.resource = data.resource
        switch data.body {
        case .data(let bytes): self.body = .data(bytes)
        case .stream: self.body = .stream(first: nil)
        case .file(let url, let identity):
            self.body = .file(url)
            self.identity = identity
        }
    }

    /// The version in which a request announces that its upload can be continued; `nil` if it does not.
    ///
    /// It does unless the program itself takes part in such a protocol. The program may choose the version. Both may be
    /// in the fields of the request or of the session.
    static func version(for request: URLRequest, _ body: TaskBody, _ core: SessionCore) -> UploadVersion? {
        guard core.configuration.resumesUploads, let method = request.httpMethod,
            ["POST", "PUT", "PATCH"].contains(method), body.length(for: request) != 0, let url = request.url
        else { return nil }
        let fields = HTTPFields(request.allHTTPHeaderFields)
        let shared = core.configuration.httpAdditionalHeaders?.map { ("\($0.key.base)", "\($0.value)") } ?? []
        let sharedFields = HTTPFields(Dictionary(shared) { first, _ in first })
        guard !UploadVersion.isSpoken(by: fields), !UploadVersion.isSpoken(by: sharedFields) else { return nil }
        if UploadVersion.isNamed(by: fields) { return UploadVersion(fields) }
        if UploadVersion.isNamed(by: sharedFields) { return UploadVersion(sharedFields) }
        return HTTPSemantics.Origin(url).flatMap { core.uploadVersions.value[$0] } ?? .newest
    }

    // MARK: Requests

    /// A request is about to be sent, possibly again.
    func requestBegins(for loader: TaskLoader) {
        self.machine.creationRepeated()
        if case .appending(let part) = self.machine.phase { loader.bodyContinues(at: part.offset) }
    }

    func fileOpened(_ identity: FileIdentity) {
        if self.machine.phase == .creating { self.identity = identity }
    }

    /// Remembers where the upload is continued.
    /// - Parameters:
    ///   - reference: relative to the URL of the request.
    ///   - url: of the request.
    func found(_ reference: String, at url: URL) {
        guard let resource = URL(string: reference, relativeTo: url)?.absoluteURL, let origin = Origin(resource),
            HTTPTransport.ServerEndpoint(resource) != nil, let scheme = resource.scheme?.loweredASCII,
            ["http", "https"].contains(scheme)
        else { return }
        if Origin(url)?.isSecure == true, !origin.isSecure { return }
        self.resource = resource
        self.machine.resourceFound()
    }

    /// The server has moved the upload resource.
    /// - Returns: `false` if it cannot be used there: an encrypted upload is never continued without encryption.
    func moved(to url: URL) -> Bool {
        let isSecure = self.creation.url.flatMap { Origin($0) }?.isSecure == true
        guard !isSecure || Origin(url)?.isSecure == true else { return false }
        self.resource = url
        return true
    }

    private static let conditions: Set<HTTPField.Name> = [
        .ifMatch, .ifNoneMatch, .ifModifiedSince, .ifUnmodifiedSince, .ifRange, .range,
    ]

    /// The next request to the upload resource, without the fields of the protocol; `nil` if there is none.
    var request: (URLRequest, TaskBody)? {
        switch self.machine.phase {
        case .appending(let part):
            guard let request = self.request("PATCH") else { return nil }
            return self.body(of: part).map { (request, $0) }
        case .cancelling: return self.deletion.map { ($0, .none) }
        case .creating, .pausing, .retrievingOffset, .ended: return self.request("HEAD").map { ($0, .none) }
        }
    }

    /// Only at the origin of the upload itself: its server must not make us delete something at another one.
    private var deletion: URLRequest? {
        guard let resource, let origin = Origin(resource), self.creation.url.flatMap({ Origin($0) }) == origin else {
            return nil
        }
        return self.request("DELETE")
    }

    private func request(_ method: String) -> URLRequest? {
        guard let resource, let origin = Origin(resource), let first = self.creation.url.flatMap({ Origin($0) }) else {
            return nil
        }
        var fields = RedirectPolicy.fieldsWithoutContent(
            HTTPFields(self.creation.allHTTPHeaderFields), from: first, to: origin)
        // Conditions are about the target of the upload.
        fields.removeAll { Self.conditions.contains($0.name) }
        var request = self.creation
        request.url = resource
        request.httpBody = nil
        request.allHTTPHeaderFields = fields.values
        request.httpMethod = method
        return request
    }

    /// - Returns: `nil` if the body has no such part.
    private func body(of part: UploadPart) -> TaskBody? {
        switch self.body {
        case .data(let data):
            guard let length = part.length, part.offset + length <= data.count else { return nil }
            return .data(data.dropFirst(Int(part.offset)).prefix(Int(length)))
        case .file(let url):
            guard let identity, let length = part.length else { return nil }
            return .filePart(url, FilePart(offset: part.offset, length: length, identity: identity))
        case .stream: return .streamRest(from: part.offset)
        case .none, .filePart, .streamRest: return nil
        }
    }

    // MARK: Pausing

    /// Calls `target` after `pause`.
    func pause(_ pause: Duration, on core: SessionCore, for target: any TimerTarget) {
        core.executor.pool?.loop.arm(self.timer, after: pause, target: target)
    }

    func stopPausing(on core: SessionCore) {
        if self.timer.deadline != nil { core.executor.pool?.loop.disarm(self.timer) }
    }

    // MARK: Resume data

    /// Resume data for another task; `nil` if the upload cannot be continued.
    /// - Parameter originalRequest: of the task.
    func resumeData(originalRequest: URLRequest) -> UploadResumeData? {
        guard self.machine.isResumable, let resource, let body = self.storableBody else { return nil }
        return UploadResumeData(
            originalRequest: originalRequest, currentRequest: self.creation, resource: resource,
            version: self.machine.version, acknowledged: self.machine.acknowledged, length: self.machine.length,
            partSize: self.machine.limits.partSize, expiry: self.machine.limits.expiry, body: body)
    }

    private var storableBody: UploadResumeData.Body? {
        switch self.body {
        case .data(let data): data.count <= UploadResumeData.bodyLimit ? .data(data) : nil
        case .file(let url): self.identity.map { .file(url, $0) }
        case .stream: .stream
        case .none, .filePart, .streamRest: nil
        }
    }
}

extension TaskBody {
    /// In bytes; `nil` if unknown. A stream can be longer or shorter than announced, and cannot be divided.
    fileprivate var knownLength: Int64? {
        if case .stream = self { return nil }
        let length = self.length(for: nil)
        return length >= 0 ? length : nil
    }
}

/// The versions that servers are known to speak, other than the newest: the last `limit` of this session.
struct UploadVersions {
    private static let limit = 64

    private var entries: [(origin: HTTPSemantics.Origin, version: UploadVersion)] = []

    subscript(_ origin: HTTPSemantics.Origin) -> UploadVersion? {
        self.entries.last { $0.origin == origin }?.version
    }

    mutating func insert(_ version: UploadVersion, at origin: HTTPSemantics.Origin) {
        self.entries.removeAll { $0.origin == origin }
        self.entries.append((origin, version))
        if self.entries.count > Self.limit { self.entries.removeFirst() }
    }
}
