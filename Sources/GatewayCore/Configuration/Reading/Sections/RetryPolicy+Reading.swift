extension RetryPolicy {
    init(reading section: SectionReader<UpstreamKey>) {
        self.init()
        section.read(.retries, into: &self.attempts, as: .integer(0...100))
        section.read(.retryDelay, into: &self.initialDelay, as: .duration(.zero ... .seconds(60)))
        self.maximumDelay = max(self.maximumDelay, self.initialDelay)
        section.read(.retryMaxDelay, into: &self.maximumDelay, as: .duration(.zero ... .seconds(600)))
        if self.maximumDelay < self.initialDelay {
            section.add(.retryMaxDelay, expected: "at least the retry delay of \(DurationText(self.initialDelay))")
        }
    }
}
