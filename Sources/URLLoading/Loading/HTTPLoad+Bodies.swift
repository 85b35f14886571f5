import Foundation
import HTTPSemantics
import HTTPTransport

/// The bodies of requests.
extension HTTPLoad {
    func sendBody() {
        switch self.body {
        case .none: self.send(.none)
        case .data(let data): self.send(.source(DataBody(data), length: Int64(data.count)))
        case .file(let url): self.sendFile(url, part: nil)
        case .filePart(let url, let part): self.sendFile(url, part: part)
        case .stream(let first?):
            self.body = .stream(first: nil)
            self.hasSentBodyStream = true
            self.send(first)
        case .stream(nil):
            self.loader.askBodyStream(
                self.awaiting { load, stream in
                    guard load.request.httpMethod != "GET" else { return load.failForBodyOfGET() }
                    guard let stream = stream.value ?? load.takeBodyStream() else {
                        return load.fail(
                            .requestBodyStreamExhausted, "The body must be sent, and the delegate provided no stream.")
                    }
                    load.send(stream)
                })
        case .streamRest(let offset):
            self.loader.askBodyStream(
                from: offset,
                self.awaiting { load, stream in
                    guard let stream = stream.value else { return load.failWithoutRest(from: offset) }
                    load.send(stream)
                })
        }
    }

    /// The request's own stream, which can be read once.
    private func takeBodyStream() -> InputStream? {
        defer { self.hasSentBodyStream = true }
        return self.hasSentBodyStream ? nil : self.request.httpBodyStream
    }

    private func sendFile(_ url: URL, part: FilePart?) {
        do throws(FileBodyFailure) {
            let reader = try FileReader(url, part: part)
            self.upload?.fileOpened(reader.identity)
            self.send(.source(ReadAheadBody(reader), length: reader.length))
        } catch {
            if error == .changed { self.upload?.machine.becomeUnresumable() }
            self.fail(LoadFailure.error(error, url: self.request.url))
        }
    }

    private func send(_ stream: InputStream) {
        let body = ReadAheadBody(UncheckedTransfer(stream).value)
        let length = self.body.length(for: self.request)
        self.send(.source(body, length: length >= 0 ? length : nil))
    }

    /// RFC 9110 §10.1.1: the server does not do what the request expects, which is `100-continue` at most.
    /// - Returns: whether the request is sent again.
    func repeatWithoutExpectation() -> Bool {
        guard self.request.value(forHTTPHeaderField: "Expect") != nil, !self.hasUsedUpBody else { return false }
        self.request.setValue(nil, forHTTPHeaderField: "Expect")
        self.abandonAttempt()
        self.send()
        return true
    }

    func failForBodyOfGET() { self.fail(.dataLengthExceedsMaximum, "resource exceeds maximum size") }

    func error(_ failure: ExchangeFailure, _ attempt: HTTPAttempt) -> URLError {
        guard case .body = failure, case .source(let source, _) = attempt.body,
            let cause = (source as? ReadAheadBody)?.failure
        else {
            return LoadFailure.error(failure, url: self.request.url)
        }
        if let file = cause as? FileBodyFailure { return LoadFailure.error(file, url: self.request.url) }
        return LoadFailure.error(.requestBodyStreamExhausted, url: self.request.url, cause: cause)
    }
}
