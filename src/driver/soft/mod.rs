//! The software GPU as a driver.
