import Foundation

extension URLSession {
    /// The content of a response as an asynchronous sequence of bytes. At most 1 MiB is buffered. Releasing the
    /// iterator before the end cancels the task. Iterate once.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        public struct AsyncIterator: AsyncIteratorProtocol {
            @usableFromInline var bytes: ByteIterator

            @inlinable
            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                try await self.bytes.next(isolation: actor)
            }
        }

        /// The task that loads the bytes.
        public let task: URLSessionDataTask
        let consumer: ByteConsumer

        public func makeAsyncIterator() -> AsyncIterator {
            AsyncIterator(bytes: ByteIterator(self.makeByteReader()))
        }
    }

    /// Loads the request and returns when the response is received; the content is loaded as it is read.
    ///
    /// Cancelling the Swift task cancels the load, also while the content is read. The delegate takes precedence over
    /// the session's, and gets no calls for the response and the content.
    public func bytes(
        for request: URLRequest, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (AsyncBytes, URLResponse) {
        let waiting = AwaitedTask()
        let resumer = ChannelResumer(waiting)
        let channel = ByteChannel(wanted: { resumer.resume() }, abandoned: { waiting.cancel() })
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let answer = OneShotHandler<Result<UncheckedTransfer<(AsyncBytes, URLResponse)>, any Error>> {
                    continuation.resume(with: $0.map(\.value))
                }
                let task = self.dataTask(
                    request,
                    consumer: .bytes(channel) { result in
                        guard let task = waiting.task as? URLSessionDataTask else {
                            return answer(.failure(URLError(.cancelled)))
                        }
                        answer(
                            result.map {
                                UncheckedTransfer((AsyncBytes(task: task, consumer: ByteConsumer(channel)), $0))
                            }
                        )
                    }, delegate: delegate)
                waiting.start(task)
            }
        } onCancel: {
            waiting.cancel()
        }
    }

    /// Like `bytes(for:delegate:)`, with a GET request.
    public func bytes(
        from url: URL, delegate: (any URLSessionTaskDelegate)?
    ) async throws -> (AsyncBytes, URLResponse) {
        try await self.bytes(for: URLRequest(url: url), delegate: delegate)
    }
}

extension URLSession.AsyncBytes: ByteRunSequence {
    package func makeByteReader() -> ByteReader { ByteReader(self.consumer) }
}

extension URL {
    /// The content of a URL as bytes, loaded by the shared session when first read.
    public struct AsyncBytes: AsyncSequence, Sendable {
        public typealias Element = UInt8

        public struct AsyncIterator: AsyncIteratorProtocol {
            let url: URL
            var bytes: URLSession.AsyncBytes.AsyncIterator?

            public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UInt8? {
                if self.bytes == nil {
                    self.bytes = try await URLSession.shared.bytes(from: self.url).0.makeAsyncIterator()
                }
                return try await self.bytes?.next(isolation: actor)
            }
        }

        let url: URL

        public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(url: self.url) }
    }

    /// The content of the resource.
    public var resourceBytes: AsyncBytes { AsyncBytes(url: self) }

    /// The lines of the resource, like `AsyncSequence.lines`.
    public var lines: AsyncLineSequence<AsyncBytes> { self.resourceBytes.lines }
}

/// A sequence whose bytes can also be read in runs, which is faster than byte by byte.
package protocol ByteRunSequence {
    /// Like `makeAsyncIterator`.
    func makeByteReader() -> ByteReader
}
