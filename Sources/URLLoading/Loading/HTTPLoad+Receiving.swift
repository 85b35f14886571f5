import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import TLSEngine

extension HTTPLoad {
    func bodySent(_ count: Int) {
        self.transfer.sent(count)
    }

    func informationalReceived(_ head: HTTPTransport.ResponseHead, _ attempt: HTTPAttempt) {
        guard let response = self.response(head, contentIsEncoded: false) else { return }
        self.transfer.informed(response)
    }

    func headReceived(_ head: HTTPTransport.ResponseHead, framing: ResponseFraming, _ attempt: HTTPAttempt) {
        guard let url = self.request.url else { return }
        let isCoded = framing != .none && head.first("content-encoding") != nil
        self.decoder =
            isCoded ? ContentDecoder(HTTPFields(lines: head.fields.lazy.map { (name: $0.name, value: $0.value) })) : nil
        guard let response = self.response(head, contentIsEncoded: self.decoder != nil) else { return }
        self.response = response
        self.decodedBytes = 0
        self.isGiven = false
        self.end = nil
        self.keepCookies(head.fields, from: url)
        self.authorization?.received(
            authenticationLines: head.fields.filter { $0.isNamed("authentication-info") }.map(\.value))
        if head.status == 401, self.authenticate(response, head) { return }
        // Most responses are the result, and no rule needs their fields.
        if head.status < 300, self.transfer.resumption == nil { return self.give(response) }
        let fields = HTTPFields(lines: head.fields.lazy.map { (name: $0.name, value: $0.value) })
        if head.status == 304, self.useStored(updatedBy: fields, attempt) { return }
        if self.resume(response, fields) { return }
        self.followOrGive(response, fields)
    }

    private func response(_ head: HTTPTransport.ResponseHead, contentIsEncoded: Bool) -> HTTPURLResponse? {
        guard let url = self.request.url else { return nil }
        return HTTPURLResponse(
            url: url, statusCode: head.status, httpVersion: "HTTP/1.\(head.minorVersion)",
            lines: head.fields.map { (name: $0.name, value: $0.value) }, contentIsEncoded: contentIsEncoded)
    }

    // MARK: Redirects

    private func followOrGive(_ response: HTTPURLResponse, _ fields: HTTPFields) {
        guard let url = self.request.url else { return }
        switch RedirectStep(response, fields: fields, of: self.request, at: url, count: self.redirects) {
        case .none: self.give(response)
        case .refuse(let code, let text): self.fail(code, text)
        case .follow(let next, let keepsContent):
            self.transfer.askRedirect(
                response, to: next,
                self.awaiting { load, chosen in
                    guard let chosen else { return load.give(response) }
                    load.follow(chosen, keepsContent: keepsContent && chosen.httpMethod == next.httpMethod)
                })
        }
    }

    private func follow(_ next: URLRequest, keepsContent: Bool) {
        self.redirects += 1
        self.transfer.redirected()
        self.moveOn()
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
    func moveOn() {
        guard let attempt = self.attempt else { return }
        self.attempt = nil
        self.end = nil
        self.note(attempt, attempt.exchange?.metricsSoFar)
        self.decoder = nil
        attempt.waste()
    }

    // MARK: Going on with a download

    /// - Returns: whether the response is taken care of.
    private func resume(_ response: HTTPURLResponse, _ fields: HTTPFields) -> Bool {
        guard let resumption = self.transfer.resumption, !self.beginsAgain else { return false }
        switch resumption.resumption.judge(status: response.statusCode, fields: fields) {
        case .notTheContent, .startAgain: return false
        case .goOn(let total):
            guard self.transfer.resumeFile(response, total: total) else { return self.beginAgain() }
            self.isGiven = true
            if self.decoder == nil, let end = self.end { self.complete(end) }
        case .complete:
            guard self.transfer.resumeFile(response, total: resumption.resumption.offset) else {
                return self.beginAgain()
            }
            self.moveOn()
            self.finish()
        case .askAnew: return self.beginAgain()
        }
        return true
    }

    private func beginAgain() -> Bool {
        self.beginsAgain = true
        self.conditions = [:]
        self.moveOn()
        self.send()
        return true
    }

    // MARK: Content

    /// The response is the result.
    func give(_ response: HTTPURLResponse) {
        self.isGiven = true
        self.beginKeeping(response)
        self.transfer.responded(response)
        if self.decoder == nil, let end = self.end { self.complete(end) }
    }

    func contentReceived(_ bytes: RawSpan) {
        self.wireBytes += bytes.byteCount
        guard self.decoder == nil else {
            self.decoder?.feed(bytes)
            return self.decode()
        }
        guard self.keeping == nil, let file = self.transfer.file else { return self.deliver(Data(copying: bytes)) }
        self.decodedBytes += Int64(bytes.byteCount)
        self.transfer.received(bytes, wireBytes: self.takeWireBytes(), into: file)
    }

    private func takeWireBytes() -> Int {
        defer { self.wireBytes = 0 }
        return self.wireBytes
    }

    /// Gives out what can be decoded, as far as it is wanted, and asks for more when that is all.
    func decode() {
        do throws(ContentDecodingFailure) {
            while self.credit > 0 {
                guard let piece = try self.decoder?.next() else { return self.decodedAll() }
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

    private func decodedAll() {
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
        self.keeping?.append(data)
        self.transfer.received(data, wireBytes: self.takeWireBytes())
    }

    // MARK: End

    func exchangeEnded(_ end: ExchangeEnd, metrics: ExchangeMetrics, _ attempt: HTTPAttempt) {
        self.note(attempt, metrics)
        if case .failed(let failure) = end, self.response == nil {
            return self.fail(self.refusal ?? self.error(failure, attempt))
        }
        self.end = end
        // What the response means for the load is told when it is known; what is left of it, when it is decoded.
        guard self.isGiven else { return }
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
        case .upgraded(let connection): self.transfer.upgraded(connection)
        case .finished: self.keep { self.finish() }
        case .failed(let failure): self.fail(LoadFailure.error(failure, url: self.request.url))
        }
    }

    func note(_ attempt: HTTPAttempt, _ metrics: ExchangeMetrics?) {
        guard let request = attempt.request, let metrics, !attempt.isNoted else { return }
        attempt.isNoted = true
        self.transfer.note(
            TransactionRecord(
                request: request.wearing(attempt.head), response: self.response, source: .network(metrics),
                decodedBytes: self.decodedBytes))
    }
}

extension URLRequest {
    /// The request with the fields that were sent.
    func wearing(_ head: RequestHead) -> URLRequest {
        var request = self
        for field in head.fields { request.setValue(field.value, forHTTPHeaderField: field.name) }
        return request
    }
}
