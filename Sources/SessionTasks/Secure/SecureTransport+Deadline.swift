import StreamTransport

extension SecureTransport: TimerTarget {
    package func timerFired(_ timer: LoopTimer) {
        self.fail(.deadlinePassed(.securing))
    }
}
