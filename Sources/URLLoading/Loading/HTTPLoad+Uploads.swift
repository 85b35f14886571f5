import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import StreamTransport
import TLSEngine
import WireText

/// Uploads that are continued after an interruption.
extension HTTPLoad {
    /// The upload that the request is about to create; `nil` if it cannot be continued.
    var newUpload: UploadTransfer? {
        guard self.loader.task is URLSessionUploadTask, self.canReadBodyAgain,
            let version = UploadTransfer.version(for: self.request, self.body, self.core)
        else { return nil }
        return UploadTransfer(version, self.request, self.body)
    }

    /// Whether the rest of the body can be sent after an interruption, as far as is known of the delegates.
    private var canReadBodyAgain: Bool {
        guard case .stream = self.body else { return true }
        return self.loader.delegates.contains {
            $0.mayImplement(.bodyStreamFromOffset) || $0.mayImplement(.bodyStreamFromOffsetAsync)
        }
    }

    // MARK: Responses

    func handleInformational(_ head: ResponseHead) {
        guard let upload = self.upload, let url = self.request.url else { return }
        let fields = HTTPFields(head.fields.all)
        switch upload.machine.informationalReceived(status: head.status, fields: fields, now: HTTPDate(Date())) {
        case .ignore: break
        case .remember(let reference): upload.found(reference, at: url)
        case .refuse(let limit, let reference):
            if let reference { upload.found(reference, at: url) }
            upload.machine.becomeUnresumable()
            self.fail(.dataLengthExceedsMaximum, "The server takes uploads of \(limit) bytes at most.")
        }
    }

    /// - Returns: whether the response is not the final one.
    func handleUploadResponse(_ response: HTTPURLResponse, _ head: ResponseHead) -> Bool {
        guard let upload = self.upload else { return false }
        let fields = HTTPFields(head.fields.all)
        let phase = upload.machine.phase
        let isSent = self.attempt?.exchange?.isRequestSent ?? true
        let action = upload.machine.responseReceived(
            status: head.status, fields: fields, isWholePartSent: isSent, now: HTTPDate(Date()))
        switch action {
        case .deliver:
            if phase == .creating { self.learnVersion(fields) } else { return self.deliverLast(response) }
            return false
        case .createAgain:
            self.learnVersion(fields)
            self.abandonAttempt()
            self.send()
        case .retrieveOffset(let pause):
            self.abandonAttempt()
            self.pauseUpload(pause)
        case .append:
            self.abandonAttempt()
            self.sendUploadRequest()
        case .move: self.moveUpload(response, fields)
        case .fail(let failure): self.failUpload(failure)
        }
        return true
    }

    /// The response to a part answers the whole upload: a redirect that keeps the content would take the part alone.
    /// - Returns: whether it was delivered.
    private func deliverLast(_ response: HTTPURLResponse) -> Bool {
        guard 300...399 ~= response.statusCode, response.statusCode != 303 else { return false }
        self.deliverResponse(response)
        return true
    }

    /// The server says which version it speaks.
    private func learnVersion(_ fields: HTTPFields) {
        guard let version = UploadVersion(fields), let origin = self.request.url.flatMap({ Origin($0) }) else { return }
        self.core.uploadVersions.value.insert(version, at: origin)
    }

    private func moveUpload(_ response: HTTPURLResponse, _ fields: HTTPFields) {
        guard let url = self.request.url else { return }
        switch RedirectStep(response, fields: fields, of: self.request, at: url, count: self.redirects) {
        case .none: self.failUpload(.refused(status: response.statusCode))
        case .refuse(let code, let text): self.fail(code, text)
        case .follow(let next, _):
            self.loader.askRedirect(
                response, to: next,
                self.awaiting { load, chosen in
                    guard let target = chosen?.url else { return load.deliverResponse(response) }
                    guard HTTPTransport.ServerEndpoint(target) != nil, Self.isHTTP(target) else {
                        return load.fail(
                            LoadFailure.error(.unsupportedURL, url: target, text: "An upload needs an HTTP URL."))
                    }
                    guard load.upload?.moved(to: target) == true else { return load.failUpload(.unencrypted) }
                    load.countRedirect()
                    load.abandonAttempt()
                    load.sendUploadRequest()
                })
        }
    }

    // MARK: Interruptions

    /// - Returns: whether the upload is continued.
    func continueUpload(after failure: ExchangeFailure, of attempt: HTTPAttempt) -> Bool {
        guard let upload = self.upload, failure.interruptsUploads,
            case .retrieveOffset(let pause) = upload.machine.interrupted(now: HTTPDate(Date()))
        else { return false }
        upload.interruption = self.error(failure, attempt)
        self.attemptEnded()
        self.pauseUpload(pause)
        return true
    }

    private func pauseUpload(_ pause: Duration) {
        self.upload?.pause(pause, on: self.core, for: self)
    }

    /// The task continues after a suspension.
    func continueUploadIfDue() {
        guard let upload = self.upload, upload.isDue, !self.loader.transfer.isSuspended else { return }
        upload.isDue = false
        upload.machine.pauseEnded()
        self.sendUploadRequest()
    }

    // MARK: Requests to the upload resource

    /// Continues an upload that was created before.
    func beginResumedUpload() {
        if let failure = self.upload?.machine.begin(now: HTTPDate(Date())) { return self.failUpload(failure) }
        self.sendUploadRequest()
    }

    /// Asks for the offset, or appends a part.
    func sendUploadRequest() {
        guard let upload = self.upload else { return }
        guard let (request, body) = upload.request, let url = request.url, let origin = ServerEndpoint(url) else {
            return self.failUpload(.noOffset)
        }
        if origin != self.origin { self.forgetOrigin() }
        self.origin = origin
        (self.request, self.body) = (request, body)
        self.send()
    }

    private func forgetOrigin() {
        self.routes = []
        self.credentials = RequestCredentials()
        self.releaseLease()
        self.requiresHTTP11 = false
    }

    // MARK: Cancelling

    /// Asks the server to delete an upload that is not continued. The load has ended; nothing waits for the answer.
    /// - Source: draft-ietf-httpbis-resumable-upload, "Upload Cancellation".
    func deleteUpload() {
        guard self.core.configuration.deletesCancelledUploads, let upload, upload.machine.cancelled(),
            let (request, _) = upload.request, let url = request.url,
            let origin = ServerEndpoint(url), origin == self.origin, let pool = self.core.executor.pool
        else { return }
        (self.request, self.body) = (request, .none)
        guard let exchange = try? self.exchange(at: url, origin),
            !exchange.needsAuthenticatedName || self.mayAuthenticateName(exchange)
        else { return }
        UploadDeletion.send(exchange, in: pool)
    }

    private func exchange(at url: URL, _ origin: HTTPTransport.ServerEndpoint) throws -> ExchangeRequest {
        var exchange = ExchangeRequest(origin, head: self.head(at: url))
        exchange.origin.socketPath = self.core.requestSettings.unixSocketPath
        if origin.scheme == .https { exchange.secure = try self.secureSetup(origin, exchange.head) }
        exchange.proxy = try self.proxy(for: url, origin, exchange.head)
        exchange.assumesHTTP2 = self.assumesHTTP2(exchange.head)
        self.prepareNetworks(&exchange)
        exchange.waitsForConnectivity = false
        exchange.isMeasured = false
        return exchange
    }

    // MARK: Failing

    private func failUpload(_ failure: UploadFailure) {
        let interruption = self.upload?.interruption
        self.fail(
            LoadFailure.error(
                interruption?.code ?? .badServerResponse, url: self.request.url, cause: failure,
                text: "The upload cannot be continued: \(failure)."))
    }

    /// The delegate has no stream for the rest of the body.
    func failWithoutRest(from offset: Int64) {
        let text = "The delegate provided no stream for the body from byte \(offset) on."
        let code = self.upload?.interruption?.code ?? .requestBodyStreamExhausted
        self.fail(LoadFailure.error(code, url: self.request.url, cause: self.upload?.interruption, text: text))
    }
}

extension HTTPLoad: TimerTarget {
    /// The pause before an upload is continued is over.
    func timerFired(_ timer: LoopTimer) {
        guard !self.isStopped else { return }
        self.upload?.isDue = true
        self.continueUploadIfDue()
    }
}

extension ExchangeFailure {
    /// Whether the connection is to blame, so that another attempt may succeed.
    fileprivate var interruptsUploads: Bool {
        switch self {
        case .connecting, .idle, .connectionLost, .leaseLost, .truncated: true
        case .securing(let failure): failure.kind == .closedDuringHandshake
        case .http2(.reset), .http2(.refused), .http2(.overload), .http2(.settingsTimeout): true
        case .http2(.http11Required), .http2(.violation), .http2(.outOfMemory): false
        case .cancelled, .request, .notAdmitted, .violation, .body, .poolClosed: false
        }
    }
}
