import Foundation
import SessionTasks
import StreamTransport
import Testing
import URLLoading

@Suite(
    "Marks of traffic by its service type", .loading, .onlyDirect("the marks are read from connections to the server"),
    .timeLimit(.minutes(20)))
struct TrafficMarkTests {
    /// RFC 4594 §2.3; the numbers are those of the code points' names.
    private static let marks: [(NSURLRequest.NetworkServiceType, UInt8)] = [
        (.default, 0), (.background, 8), (.responsiveData, 18), (.avStreaming, 26), (.responsiveAV, 32), (.video, 34),
        (.voip, 40), (.callSignaling, 40), (.voice, 46),
    ]

    @Test func trafficClassesAreThoseOfRFC4594() {
        for (type, mark) in Self.marks { #expect(type.trafficClass.rawValue == mark, "\(type)") }
        for mark in TrafficClass.allCases {
            let four = mark.socketOption(toward: .ipv4(address: 1, port: 1))
            let six = mark.socketOption(toward: .ipv6(high: 0, low: 1, scope: 0, port: 1))
            #expect(four?.level == 0 && four?.name == 1 && four?.value == Int32(mark.rawValue) * 4)
            #expect(six?.level == 41 && six?.name == 67 && six?.value == four?.value)
            #expect(mark.socketOption(toward: .unix(path: "/run/a")) == nil)
        }
    }

    @Test func socketOfALoadIsMarked() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let session = URLSession.test { $0.networkServiceType = .background }
        #expect(try await session.load(server.url()).text == "hello")
        #expect(SocketMarks.toward(server.port) == [8])
        // The request's value precedes the session's, on the existing connection.
        for (type, mark) in Self.marks {
            var request = URLRequest(url: server.url())
            request.networkServiceType = type
            #expect(try await session.load(request).text == "hello")
            #expect(SocketMarks.toward(server.port) == [type == .default ? 8 : mark])
        }
        #expect(server.connections == 1)
        session.invalidateAndCancel()
    }

    @Test func socketsOfStreamAndWebSocketTasksAreMarked() async throws {
        let server = try await ConnectionServer { task in try await task.say("hello") }
        let session = URLSession.test { $0.networkServiceType = .voice }
        let stream = session.streamTask(withHostName: "127.0.0.1", port: server.port)
        stream.resume()
        let (bytes, _) = try await stream.readData(ofMinLength: 5, maxLength: 5, timeout: 0)
        #expect(bytes == Data("hello".utf8) && SocketMarks.toward(server.port) == [46])
        stream.cancel()

        let other = try await ConnectionServer { task in
            let socket = try await task.accept()
            try await socket.send(.string("hello"))
        }
        var request = URLRequest(url: other.url())
        request.networkServiceType = .responsiveData
        let webSocket = session.webSocketTask(with: request)
        webSocket.resume()
        _ = try await webSocket.receive()
        #expect(SocketMarks.toward(other.port) == [18])
        session.invalidateAndCancel()
    }
}
