import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import TLSEngine

/// Loads over HTTP: one exchange after the other, until there is a response that redirects nowhere and asks for nothing.
final class HTTPLoad: RequestLoad, @unchecked Sendable {
    let core: SessionCore
    let loader: TaskLoader
    /// As the program made it, or as redirects and their delegate left it.
    var request: URLRequest { didSet { self.isRequestPublished = false } }
    private var isRequestPublished: Bool
    var body: TaskBody
    var attempt: HTTPAttempt?
    private var isStopped = false
    private var isHeld = false
    /// Counts what was begun, so that an answer that comes late is known as such.
    private var generation = 0
    /// Where the request goes.
    private var origin: HTTPTransport.ServerEndpoint?

    var redirects = 0
    /// What was sent with the attempt, if anything.
    var authorization: Authorization?
    var refusedCredentials = 0
    var lastCredential: URLCredential?
    /// Kept answers and their conditions.
    var stored: CachedURLResponse?
    var conditions = HTTPFields()
    var cacheWriter: CacheWriter?
    /// What a storage of the program's own gave for the request; `nil` where none was asked.
    var cookies: [HTTPCookie]?

    /// Of the response that is being given out.
    var decoder: ContentDecoder?
    var decodedBytes: Int64 = 0
    var wireBytes = 0
    var credit = 0
    /// How the exchange ended, while decoded content still waits, or while it is not known yet whether its response is
    /// the result.
    var end: ExchangeEnd?
    /// Whether the response is the result.
    var isFinalResponse = false
    var response: HTTPURLResponse?
    /// What a download had before is of no use.
    var restartsDownload = false
    /// Why the connection was given up, where a delegate wished it.
    var refusal: URLError?

    init(_ request: URLRequest, body: TaskBody, for transfer: TaskLoader) {
        self.core = transfer.core
        self.loader = transfer
        self.request = request
        // What goes on from an earlier attempt begins with a request of its own.
        self.isRequestPublished = transfer.resumption == nil
        self.body = body
    }

    // MARK: Loader

    func start() {
        self.origin = self.request.url.flatMap { HTTPTransport.ServerEndpoint($0) }
        guard self.origin != nil else {
            return self.fail(.badURL, "The URL has no host, or a port that does not exist.")
        }
        // Also of where a redirect leads to.
        if let refusal = self.core.refusal(of: self.request) { return self.fail(refusal) }
        if !self.body.isNone, self.request.httpMethod == "GET" {
            // Who gives streams is asked for one even here, as Foundation does it; the answer comes to the same.
            guard case .stream(nil) = self.body else { return self.failForBodyOfGET() }
            return self.send()
        }
        if let resumption = self.loader.resumption, !self.restartsDownload {
            self.conditions = resumption.resumption.requestFields
            return self.send()
        }
        self.consultCache()
    }

    private func failForBodyOfGET() { self.fail(.dataLengthExceedsMaximum, "resource exceeds maximum size") }

    func stop() {
        self.isStopped = true
        // What was given up on the way was a transaction too.
        if let attempt { self.recordTransaction(attempt, attempt.exchange?.metricsSoFar) }
        self.attempt?.stop()
        self.attempt = nil
        self.decoder = nil
    }

    func pull(_ count: Int) {
        guard !self.isStopped else { return }
        if self.decoder == nil {
            if let end { return self.complete(end) }
            self.attempt?.exchange?.pull(count)
        } else {
            let (sum, overflow) = self.credit.addingReportingOverflow(count)
            self.credit = overflow ? .max : sum
            self.decode()
        }
    }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        self.attempt?.exchange?.hold(isHeld)
        if !isHeld, self.decoder != nil { self.decode() }
    }

    func setPriority(_ priority: Float) {
        self.attempt?.exchange?.setPriority(priority)
    }

    /// Does `work` with an answer that comes back on the loop, if the load still waits for it.
    func awaiting<Answer: Sendable>(_ work: @escaping @Sendable (HTTPLoad, Answer) -> Void)
        -> @Sendable (Answer) -> Void
    {
        self.generation += 1
        let step = self.generation
        return { answer in
            self.core.pool.execute {
                guard !self.isStopped, self.generation == step else { return }
                work(self, answer)
            }
        }
    }

    // MARK: Sending

    /// Sends the request as it is now, once its body is there.
    func sendBody() {
        switch self.body {
        case .none: self.send(.none, nil)
        case .data(let data):
            let body = DataBody(data)
            self.send(.source(body, length: body.length), body)
        case .file(let url): self.sendFile(url)
        case .stream(let first?):
            self.body = .stream(first: nil)
            self.send(first)
        case .stream(nil):
            self.loader.askBodyStream(
                self.awaiting { load, stream in
                    guard load.request.httpMethod != "GET" else { return load.failForBodyOfGET() }
                    // A request may have a stream of its own, which serves once.
                    guard let stream = stream.value ?? load.takeBodyStream() else {
                        return load.fail(.requestBodyStreamExhausted, "The body is needed, and nobody gives a stream.")
                    }
                    load.send(stream)
                })
        }
    }

    private func takeBodyStream() -> InputStream? {
        defer { self.request.httpBodyStream = nil }
        return self.request.httpBodyStream
    }

    private func sendFile(_ url: URL) {
        do throws(FileBodyFailure) {
            let (body, length) = try ReadAheadBody.file(url)
            self.send(.source(body, length: length), body)
        } catch {
            self.fail(
                LoadFailure.error(error.code, url: self.request.url, cause: error.underlying, text: error.description))
        }
    }

    private func send(_ stream: InputStream) {
        let body = ReadAheadBody(Carried(stream).value)
        let length = self.body.length(for: self.request)
        self.send(.source(body, length: length >= 0 ? length : nil), body)
    }

    private func send(_ body: HTTPTransport.RequestBody, _ source: (any UploadBody)?) {
        guard let url = self.request.url, let origin = self.origin else { return }
        var order = ExchangeRequest(origin)
        order.origin.socketPath = self.core.configuration.unixSocketPath
        order.body = body
        if origin.scheme == .https {
            switch self.secureSetup(origin) {
            case .success(let secure): order.secure = secure
            case .failure(let error): return self.fail(error)
            }
        }
        order.head = self.head(at: url)
        order.isMeasured = self.loader.isMeasured
        order.priority = self.loader.priority
        let timeout = self.loader.timeout(of: self.request)
        order.connectTimeout = timeout
        order.idleTimeout = timeout
        order.trafficClass = self.core.configuration.trafficClass(for: self.request)
        let request = self.loader.isMeasured ? self.request : nil
        let startedAt = self.core.configuration.urlCache == nil ? nil : Date()
        let attempt = HTTPAttempt(self, request: request, head: order.head, body: source, startedAt: startedAt)
        self.attempt = attempt
        self.response = nil
        self.isFinalResponse = false
        self.end = nil
        self.publishRequest()
        attempt.start(order, in: self.core.pool)
        if self.isHeld { attempt.exchange?.hold(true) }
    }

    /// Shows the request as it is now, unless the task has it.
    func publishRequest() {
        guard !self.isRequestPublished else { return }
        self.isRequestPublished = true
        self.loader.requestChanged(self.request)
    }

    /// What the session adds to the request as it is now, without what is found out on the way.
    var requestBuilder: RequestBuilder {
        var dressing = RequestBuilder(self.core.configuration)
        dressing.isAtOriginalOrigin = self.core.isAtOriginalOrigin(self.request, of: self.loader.task)
        return dressing
    }

    private func head(at url: URL) -> RequestHead {
        var dressing = self.requestBuilder
        dressing.hasBody = !self.body.isNone
        dressing.conditionalFields = self.conditions
        dressing.cookies = self.cookies
        let method = self.request.httpMethod ?? "GET"
        let target = url.requestTarget
        if self.request.value(forHTTPHeaderField: "Authorization") == nil || self.authorization != nil {
            dressing.authorization = self.authorizationField(method: method, target: target, url: url)
        }
        let fields = dressing.fields(of: self.request, plain: self.core.defaultFields.value)
        return RequestHead(method: method, target: target, fields: fields)
    }

    private func secureSetup(_ origin: HTTPTransport.ServerEndpoint) -> Result<SecureSetup, URLError> {
        switch self.core.tlsContext() {
        case .success(let context):
            var secure = SecureSetup(context: context)
            secure.resumptionKey = "\(origin.host):\(origin.port)"
            secure.timeout = self.loader.timeout(of: self.request)
            return .success(secure)
        case .failure(let failure):
            return .failure(
                LoadFailure.error(
                    .secureConnectionFailed, url: self.request.url, cause: failure, text: failure.description))
        }
    }

    // MARK: Ending

    func fail(_ code: URLError.Code, _ text: String) {
        self.fail(LoadFailure.error(code, url: self.request.url, text: text))
    }

    func fail(_ error: URLError) {
        guard !self.isStopped else { return }
        self.stop()
        self.loader.failed(error)
    }

    func finish() {
        guard !self.isStopped else { return }
        self.stop()
        self.loader.finished()
    }
}

extension HTTPLoad {
    func bodySent(_ count: Int) {
        self.loader.bodySent(count)
    }

    func informationalReceived(_ head: HTTPTransport.ResponseHead, _ attempt: HTTPAttempt) {
        guard let response = self.response(head, contentIsEncoded: false) else { return }
        self.loader.informationalReceived(response)
    }

    func headReceived(_ head: HTTPTransport.ResponseHead, framing: ResponseFraming, _ attempt: HTTPAttempt) {
        guard let url = self.request.url else { return }
        let isCoded = framing != .none && head.first("content-encoding") != nil
        self.decoder =
            isCoded ? ContentDecoder(HTTPFields(lines: head.fields.lazy.map { (name: $0.name, value: $0.value) })) : nil
        guard let response = self.response(head, contentIsEncoded: self.decoder != nil) else { return }
        self.response = response
        self.decodedBytes = 0
        self.isFinalResponse = false
        self.end = nil
        self.storeCookies(head.fields, from: url)
        self.authorization?.received(
            authenticationLines: head.fields.filter { $0.isNamed("authentication-info") }.map(\.value))
        if head.status == 401, self.authenticate(response, head) { return }
        // Most responses are the result, and no rule needs their fields.
        if head.status < 300, self.loader.resumption == nil { return self.deliverResponse(response) }
        let fields = HTTPFields(lines: head.fields.lazy.map { (name: $0.name, value: $0.value) })
        if head.status == 304, self.useStored(updatedBy: fields, attempt) { return }
        if self.resume(response, fields) { return }
        self.followOrDeliver(response, fields)
    }

    private func response(_ head: HTTPTransport.ResponseHead, contentIsEncoded: Bool) -> HTTPURLResponse? {
        guard let url = self.request.url else { return nil }
        return HTTPURLResponse(
            url: url, statusCode: head.status, httpVersion: "HTTP/1.\(head.minorVersion)",
            lines: head.fields, contentIsEncoded: contentIsEncoded)
    }

    // MARK: Redirects

    private func followOrDeliver(_ response: HTTPURLResponse, _ fields: HTTPFields) {
        guard let url = self.request.url else { return }
        switch RedirectStep(response, fields: fields, of: self.request, at: url, count: self.redirects) {
        case .none: self.deliverResponse(response)
        case .refuse(let code, let text): self.fail(code, text)
        case .follow(let next, let keepsContent):
            self.loader.askRedirect(
                response, to: next,
                self.awaiting { load, chosen in
                    guard let chosen else { return load.deliverResponse(response) }
                    load.follow(chosen, keepsContent: keepsContent && chosen.httpMethod == next.httpMethod)
                })
        }
    }

    private func follow(_ next: URLRequest, keepsContent: Bool) {
        self.redirects += 1
        self.loader.countRedirect()
        self.abandonAttempt()
        if !keepsContent { self.body = TaskBody(next) }
        self.request = next
        self.stored = nil
        self.conditions = [:]
        self.authorization = nil
        self.refusedCredentials = 0
        self.lastCredential = nil
        self.start()
    }

    /// Leaves the exchange whose response is not the result.
    func abandonAttempt() {
        guard let attempt = self.attempt else { return }
        self.attempt = nil
        self.end = nil
        self.recordTransaction(attempt, attempt.exchange?.metricsSoFar)
        self.decoder = nil
        attempt.drain()
    }

    // MARK: Going on with a download

    /// - Returns: whether the response is taken care of.
    private func resume(_ response: HTTPURLResponse, _ fields: HTTPFields) -> Bool {
        guard let resumption = self.loader.resumption, !self.restartsDownload else { return false }
        switch resumption.resumption.evaluate(status: response.statusCode, fields: fields) {
        case .otherResponse, .restart: return false
        case .append(let total):
            guard self.loader.resumeFile(response, total: total) else { return self.restartDownload() }
            self.isFinalResponse = true
            if self.decoder == nil, let end = self.end { self.complete(end) }
        case .complete:
            guard self.loader.resumeFile(response, total: resumption.resumption.offset) else {
                return self.restartDownload()
            }
            self.abandonAttempt()
            self.finish()
        case .requestWhole: return self.restartDownload()
        }
        return true
    }

    private func restartDownload() -> Bool {
        self.restartsDownload = true
        self.conditions = [:]
        self.abandonAttempt()
        self.send()
        return true
    }

    // MARK: Content

    /// The response is the result.
    func deliverResponse(_ response: HTTPURLResponse) {
        self.isFinalResponse = true
        self.startCaching(response)
        self.loader.responseReceived(response)
        if self.decoder == nil, let end = self.end { self.complete(end) }
    }

    func contentReceived(_ bytes: RawSpan) {
        self.wireBytes += bytes.byteCount
        guard self.decoder == nil else {
            self.decoder?.feed(bytes)
            return self.decode()
        }
        guard self.cacheWriter == nil, let file = self.loader.file else { return self.deliver(Data(copying: bytes)) }
        self.decodedBytes += Int64(bytes.byteCount)
        self.loader.received(bytes, wireBytes: self.takeWireBytes(), into: file)
    }

    private func takeWireBytes() -> Int {
        defer { self.wireBytes = 0 }
        return self.wireBytes
    }

    /// Gives out what can be decoded, as far as it is wanted, and asks for more when that is all.
    func decode() {
        do throws(ContentDecodingFailure) {
            while self.credit > 0 {
                guard let piece = try self.decoder?.next() else { return self.decoderDrained() }
                guard !piece.isEmpty else {
                    return self.core.pool.executeLater { if self.decoder != nil { self.decode() } }
                }
                if self.credit != .max { self.credit = max(0, self.credit - piece.count) }
                self.deliver(piece)
            }
        } catch {
            self.fail(error)
        }
    }

    private func decoderDrained() {
        guard let end = self.end else {
            self.attempt?.exchange?.pull(ContentDecoder.pieceLimit)
            return
        }
        if case .finished = end {
            do throws(ContentDecodingFailure) {
                try self.decoder?.finish()
            } catch {
                return self.fail(error)
            }
        }
        self.complete(end)
    }

    private func fail(_ failure: ContentDecodingFailure) {
        self.fail(LoadFailure.error(failure.code, url: self.request.url, cause: failure, text: failure.description))
    }

    private func deliver(_ data: Data) {
        self.decodedBytes += Int64(data.count)
        self.cacheWriter?.append(data)
        self.loader.received(data, wireBytes: self.takeWireBytes())
    }

    // MARK: End

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics, _ attempt: HTTPAttempt) {
        self.recordTransaction(attempt, metrics)
        if case .failed(let failure) = end, self.response == nil {
            return self.fail(self.refusal ?? self.error(failure, attempt))
        }
        self.end = end
        // What the response means for the load is told when it is known; what is left of it, when it is decoded.
        guard self.isFinalResponse else { return }
        if self.decoder == nil { self.complete(end) } else { self.decode() }
    }

    private func error(_ failure: ExchangeFailure, _ attempt: HTTPAttempt) -> URLError {
        guard case .body = failure, let cause = attempt.body?.failure else {
            return LoadFailure.error(failure, url: self.request.url)
        }
        guard let file = cause as? FileBodyFailure else {
            return LoadFailure.error(.requestBodyStreamExhausted, url: self.request.url, cause: cause)
        }
        return LoadFailure.error(
            file.code, url: self.request.url, cause: file.underlying ?? cause, text: file.description)
    }

    func complete(_ end: ExchangeEnd) {
        self.end = nil
        switch end {
        case .upgraded(let connection): self.loader.upgraded(connection)
        case .finished: self.storeInCache { self.finish() }
        case .failed(let failure): self.fail(LoadFailure.error(failure, url: self.request.url))
        }
    }

    func recordTransaction(_ attempt: HTTPAttempt, _ metrics: ExchangeMetrics?) {
        guard let request = attempt.request, let metrics, !attempt.isRecorded else { return }
        attempt.isRecorded = true
        self.loader.recordTransaction(
            TransactionRecord(
                request: request.withSentFields(attempt.head), response: self.response, source: .network(metrics),
                decodedBytes: self.decodedBytes))
    }
}

extension URLRequest {
    /// The request with the fields that were sent.
    func withSentFields(_ head: RequestHead) -> URLRequest {
        var request = self
        for field in head.fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
        return request
    }
}

extension HTTPLoad {
    /// Sends the request as it is now, once its cookies and its body are there.
    func send() {
        self.cookies = nil
        guard self.core.asksForCookies(of: self.request) else { return self.sendBody() }
        self.publishRequest()
        self.core.askForCookies(
            of: self.loader.task,
            self.awaiting { load, cookies in
                load.cookies = cookies
                load.sendBody()
            })
    }

    /// Keeps the cookies of an answer, before anybody is told of it.
    func storeCookies(_ lines: [HeaderField], from url: URL) {
        self.core.storeCookies(lines, from: url, request: self.request, of: self.loader.task)
    }
}
