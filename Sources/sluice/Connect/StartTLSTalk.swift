import CommandLineText
import GatewayCore
import SessionTasks

/// Carries a `StartTLSDialogue` out on a stream, and the upgrade at its end.
struct StartTLSTalk {
    let task: StreamTask
    let url: EndpointURL

    func upgrade(_ startTLS: ConnectPlan.StartTLS) async throws(ConnectFailure) {
        var dialogue = StartTLSDialogue(startTLS.mode)
        while true {
            switch dialogue.nextOrder() {
            case .send(let bytes):
                try await self.perform { task throws(TaskFailure) in try await task.write(bytes) }
            case .read:
                // What stands behind the consent comes along and is noticed, or stays for TLS, which refuses it.
                let chunk = try await self.perform { task throws(TaskFailure) in try await task.read(maximum: 4096) }
                guard !chunk.bytes.isEmpty else {
                    throw ConnectFailure(
                        .refused, "\(self.url): the server ended the connection before TLS",
                        remedy: "check that this port speaks what --starttls says")
                }
                dialogue.received(chunk.bytes)
            case .secure:
                return try await self.perform { task throws(TaskFailure) in
                    try await task.startSecureConnection(startTLS.settings)
                }
            case .refused(let answer):
                throw ConnectFailure(
                    .refused, "\(self.url): no TLS by --starttls: \(answer)",
                    remedy: "nothing was sent in the clear but the question")
            case .broken(let fault):
                throw ConnectFailure(
                    .refused, "\(self.url): no TLS by --starttls: \(fault)",
                    remedy: "check that this port speaks what --starttls says")
            }
        }
    }

    private func perform<Value: Sendable>(
        _ operation: (StreamTask) async throws(TaskFailure) -> Value
    ) async throws(ConnectFailure) -> Value {
        do throws(TaskFailure) {
            return try await operation(self.task)
        } catch {
            throw ConnectFailure(opening: error, of: self.url)
        }
    }
}
